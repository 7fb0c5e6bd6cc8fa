// The filter and the details of a sweep's rows.
const makeSvg = (tag, attributes, text = "") => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
};
const rows = document.getElementById("rows");
let details; // parsed at the first use, since most readers open few of the rows

// Filtering: every word must occur somewhere in the row.
const search = document.getElementById("filter");
const shown = document.getElementById("shown");
let texts;
function filter() {
  const body = rows.tBodies[0];
  for (const open of body.querySelectorAll("tr.open")) close(open);
  texts ??= new Map([...body.rows].map((row) => [row, row.textContent.toLowerCase()]));
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const [row, text] of texts) {
    row.hidden = !words.every((word) => text.includes(word));
    count += !row.hidden;
  }
  shown.textContent = `${count.toLocaleString("en")} of ${texts.size.toLocaleString("en")} rows`;
}
search?.addEventListener("input", filter);
for (const button of document.querySelectorAll("button[data-filter]")) {
  button.addEventListener("click", () => {
    search.value = button.dataset.filter;
    filter();
    search.scrollIntoView({ block: "start" });
  });
}

// Details of one row, under it.
function table(heads, lines) {
  const made = make("table");
  const head = made.createTHead().insertRow();
  for (const word of heads) head.append(make("th", word, { class: "text", scope: "col" }));
  const body = made.createTBody();
  for (const line of lines) {
    const row = body.insertRow();
    for (const word of line) row.append(make("td", word, { class: "text" }));
  }
  const box = make("div", undefined, { class: "wide" });
  box.append(made);
  return box;
}
function strip(samples, unit) {
  const all = samples.flatMap(([, values]) => values).filter((value) => value !== null);
  const low = Math.min(...all);
  const high = Math.max(...all);
  const width = 640;
  const x = (value) => 120 + ((value - low) / (high - low || 1)) * (width - 190);
  const height = 24 * samples.length + 24;
  const drawing = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img" });
  drawing.append(makeSvg("title", {}, `Samples between ${low} and ${high} ${unit}`));
  samples.forEach(([name, values], i) => {
    const label = { x: 0, y: 24 * i + 16, class: "axis" };
    drawing.append(makeSvg("text", label, name.slice(0, 18)));
    for (const value of values) {
      if (value === null) continue;
      const kind = name === "candidate" ? "strip candidate" : "strip";
      const place = { x: x(value), y: 24 * i + 4, width: 2, height: 16, class: kind };
      drawing.append(makeSvg("rect", place));
    }
  });
  for (const value of [low, high]) {
    const place = { x: x(value), y: height - 6, class: "axis", "text-anchor": "middle" };
    drawing.append(makeSvg("text", place, `${value.toPrecision(3)} ${unit}`));
  }
  return drawing;
}
function detail(one) {
  const cell = make("td", undefined, { class: "detail", colspan: rows.tHead.rows[0].cells.length });
  const add = (title, ...content) => cell.append(make("h3", title), ...content);
  if (one.reason) add("Reason", make("p", one.reason));
  if (one.details) add("Details", make("pre", one.details));
  if (one.samples.some(([, values]) => values.some((value) => value !== null)))
    add("Samples, each a mark", strip(one.samples, "ms"));
  if (one.kernels.length)
    add("Kernels", table(["kernel", "kind", "ops", "time", "predicted", "line"], one.kernels));
  if (one.fallbacks.length)
    add("Ops that ran in eager", table(["op", "times", "line", "reason"], one.fallbacks));
  const facts = make("dl");
  for (const [name, value] of one.facts) {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", value));
    facts.append(pair);
  }
  add("Figures and settings", facts);
  return cell;
}
function open(row) {
  details ??= JSON.parse(document.getElementById("details").textContent);
  row.classList.add("open");
  row.querySelector("button").setAttribute("aria-expanded", "true");
  const under = make("tr");
  under.append(detail(details[row.id.slice("row-".length)]));
  row.after(under);
}
rows?.addEventListener("click", (event) => {
  const button = event.target.closest("button[aria-expanded]");
  if (!button) return;
  const row = button.closest("tr");
  (row.classList.contains("open") ? close : open)(row);
});
function follow() {
  const row = /^#row-\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
  if (!row) return;
  row.hidden = false;
  if (!row.classList.contains("open")) open(row);
  row.scrollIntoView({ block: "start" });
}
addEventListener("hashchange", follow);
follow();
