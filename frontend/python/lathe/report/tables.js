// Tables that sort. Text from the file is only ever text: nothing here makes HTML of a string.
"use strict";

const make = (tag, text, attributes = {}) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

// Sorting. Cells carry what they sort by; those without a value stay last in both directions.
const sortKey = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value || NaN);
};
const compare = (a, b, sign) => {
  if (typeof a === "string") return sign * a.localeCompare(b, undefined, { numeric: true });
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return sign * (a - b);
};
// What stands open under a row.
function close(row) {
  row.classList.remove("open");
  row.querySelector("button").setAttribute("aria-expanded", "false");
  row.nextElementSibling?.remove();
}
function sort(head) {
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const body = head.closest("table").tBodies[0];
  for (const open of body.querySelectorAll("tr.open")) close(open);
  const keyed = [...body.rows].map((row) => [sortKey(row, head.cellIndex), row]);
  keyed.sort((a, b) => compare(a[0], b[0], sign));
  body.append(...keyed.map(([, row]) => row));
}
for (const head of document.querySelectorAll("table.sortable th")) {
  const button = make("button", head.textContent, { type: "button" });
  head.replaceChildren(button);
  button.addEventListener("click", () => sort(head));
}
