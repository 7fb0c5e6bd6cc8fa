// The search of cases. Rows are made for those that are shown: there may be tens of thousands.
const STEP = 200;
const data = () => (data.parsed ??= JSON.parse(document.getElementById("data").textContent));
const rows = document.getElementById("rows");
const search = document.getElementById("filter");
const shown = document.getElementById("shown");
const more = document.getElementById("more");
const oneWord = (text) => String(text).split(/\s+/).join("_");
const lower = (text) => text.toLowerCase();
const signs = { agrees: "✓ ", untraced: "· " };
const words = { untraced: "not traced", timeout: "not done" };

// What of each case is searched: words with a colon as a whole, with a space around them.
function textOf([entry, number, given, found]) {
  const { labels, words, entries } = data();
  const [suite, label, name, dtype] = entries[entry];
  const whole = [`suite:${suite}`, `name:${oneWord(label)}`, `dtype:${dtype}`, `case:${number}`];
  const said = [name, dtype, suite, words[given]];
  found.forEach((one, run) => {
    whole.push(`${labels[run]}:${one ? one[0] : "none"}`);
    if (one && one.length > 1) {
      said.push(words[one[1]]);
      whole.push(`why:${one[2]}`);
    }
  });
  return ` ${whole.join(" ")} ${said.join(" ")} `.toLowerCase();
}
let texts;
let keys;
let found = [];
let made = 0;
function filter() {
  const { labels, cases } = data();
  texts ??= cases.map(textOf);
  keys ??= new Set(["suite", "name", "dtype", "case", "why", ...labels.map(lower)]);
  const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isWhole = (word) => word.includes(":") && keys.has(word.slice(0, word.indexOf(":")));
  const parts = asked.map((word) => (isWhole(word) ? ` ${word} ` : word));
  found = cases.filter((_, i) => parts.every((part) => texts[i].includes(part)));
  const count = (n) => n.toLocaleString("en");
  shown.textContent = `${count(found.length)} of ${count(cases.length)} cases`;
  rows.tBodies[0].replaceChildren();
  made = 0;
  showMore();
  if (found.length === 1) open(rows.tBodies[0].rows[0]);
}
function showMore() {
  const next = found.slice(made, made + STEP);
  rows.tBodies[0].append(...next.map(rowOf));
  made += next.length;
  more.hidden = made >= found.length;
  more.textContent = `show ${Math.min(STEP, found.length - made)} more`;
}
function rowOf(one) {
  const [entry, number, given, found] = one;
  const [suite, label, , dtype] = data().entries[entry];
  const row = make("tr");
  const first = make("td", undefined, { class: "text" });
  first.append(make("button", label, { type: "button", "aria-expanded": "false" }));
  row.append(first, make("td", suite, { class: "text" }), make("td", dtype, { class: "text" }));
  row.append(make("td", number < 0 ? "all" : String(number)));
  for (const made of found) {
    const verdict = made ? made[0] : "not asked";
    const mood = !made || signs[verdict] ? (verdict === "agrees" ? "" : "soft") : "bad";
    const sign = made ? (signs[verdict] ?? "✕ ") : "– ";
    row.append(make("td", sign + (words[verdict] ?? verdict), { class: `text ${mood}` }));
  }
  row.append(make("td", data().words[given], { class: "text given" }));
  row.shows = one;
  return row;
}

// What asks again, for a shell: nothing of the file but plain words gets into it.
function command(backend, suite, name, dtype) {
  if (![backend, suite, dtype].every((word) => /^\w[\w.-]*$/.test(word))) return "";
  const pattern = name.replace(/[^\w:-]/g, ".");
  return (
    `python -m lathe.conformance --backend ${backend} --suite ${suite} --dtypes ${dtype}` +
    ` --only '^${pattern}$' --results again-${backend}.jsonl`
  );
}
// Details of one case, under it.
function detail([entry, number, given, found]) {
  const { labels, backends, words, entries } = data();
  const [suite, label, name, dtype] = entries[entry];
  const cell = make("td", undefined, { class: "detail", colspan: rows.tHead.rows[0].cells.length });
  const add = (title, text, tag = "p") => cell.append(make("h3", title), make(tag, text));
  const which = number < 0 ? ", whose cases cannot be made" : `, number ${number}`;
  add("Case", `${name} in ${dtype}${which}`);
  if (words[given]) add("Arguments", words[given], "pre");
  found.forEach((one, run) => {
    const [verdict, said, , speed] = one ?? [];
    if (words[said]) add(`${labels[run]}: ${verdict}`, words[said], "pre");
    if (speed) add(`${labels[run]}: time`, speed);
  });
  const again = [...new Set(backends)].map((backend) => command(backend, suite, name, dtype));
  if (again.some(Boolean)) add("Again", again.filter(Boolean).join("\n"), "pre");
  const query = `suite:${suite} name:${oneWord(label)} dtype:${dtype} case:${number}`;
  const href = `#find=${encodeURIComponent(query)}`;
  const link = make("a", "the address of this case", { href });
  const place = make("p");
  place.append(link);
  cell.append(place);
  return cell;
}
function open(row) {
  row.classList.add("open");
  row.querySelector("button").setAttribute("aria-expanded", "true");
  const under = make("tr");
  under.append(detail(row.shows));
  row.after(under);
}
rows.addEventListener("click", (event) => {
  const button = event.target.closest("button[aria-expanded]");
  if (!button) return;
  const row = button.closest("tr");
  (row.classList.contains("open") ? close : open)(row);
});
search.addEventListener("input", filter);
more.addEventListener("click", showMore);

// An address says what is searched for.
function follow() {
  const [, query] = /^#find=(.*)$/.exec(location.hash) ?? [];
  if (query === undefined) return false;
  try {
    search.value = decodeURIComponent(query);
  } catch {
    return false; // no address of ours
  }
  filter();
  document.getElementById("all").scrollIntoView({ block: "start" });
  return true;
}
addEventListener("hashchange", follow);
// The table comes to be when it comes near the screen, or when an address asks for it.
if (!follow()) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    if (!texts) filter();
  });
  observer.observe(document.getElementById("all"));
}
