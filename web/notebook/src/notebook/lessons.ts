// The lessons that came with the page.

const urls = import.meta.glob<string>("../../../lessons/*.ipynb", {
  query: "?url",
  import: "default",
  eager: true,
});

const titles: Record<string, string> = {
  what_is_in_this_graph: "What is in this graph?",
  what_fusion_buys: "What does fusion buy?",
};

export const lessons = Object.entries(urls).map(([path, url]) => {
  const name = path.replace(/^.*\//, "").replace(/\.ipynb$/, "");
  return { name, url, title: titles[name] ?? name };
});

export async function lessonText(name: string): Promise<string> {
  const lesson = lessons.find((one) => one.name === name);
  if (!lesson) throw new Error(`no lesson named '${name}'`);
  const response = await fetch(lesson.url);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response.text();
}
