// A markdown cell as it reads. The renderer is loaded with the first such cell.
import { useEffect, useState } from "preact/hooks";
import { LongText } from "./long_text.tsx";

let renderer: Promise<(text: string) => string> | null = null;

export function MarkdownView({ text }: { text: string }) {
  if (!text.trim()) return <p class="soft">An empty text cell. Press Enter to write.</p>;
  return <LongText text={text} show={(part) => <Rendered text={part} />} />;
}

function Rendered({ text }: { text: string }) {
  const [html, setHtml] = useState<string | null>(null);
  useEffect(() => {
    let isOld = false;
    renderer ??= import("./markdown.ts").then(({ makeRenderer }) => makeRenderer());
    void renderer.then((render) => !isOld && setHtml(render(text)));
    return () => void (isOld = true);
  }, [text]);
  if (html === null) return <p>{text}</p>;
  // The renderer never passes HTML on: see markdown.ts.
  return <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />;
}
