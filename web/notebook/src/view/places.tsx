// Where something comes from: lines of Python with their module, or a place in a text.
import type { Place, Placed } from "../engine/protocol.ts";

const shortFile = (file = "") => file.replace(/^.*\//, "");

function Line({ place }: { place: Place }) {
  const { file, line, code, module, node, stack } = place;
  return (
    <li>
      <span class="where">
        {file ? `${shortFile(file)}:${line}` : (node ?? "unknown place")}
        {module ? ` in ${module}` : ""}
      </span>
      {code && <code>{code.trim()}</code>}
      {stack && stack.length > 1 && (
        <details>
          <summary>called from</summary>
          <ol>
            {stack.slice(1, 12).map((frame, i) => (
              <li key={i}>
                {shortFile(frame.file)}:{frame.line} <code>{frame.code?.trim()}</code>
              </li>
            ))}
          </ol>
        </details>
      )}
    </li>
  );
}

export function Places({ placed, table }: { placed: Placed; table: Place[] }) {
  const places = (placed.places ?? []).map((i) => table[i]).filter((place) => place !== undefined);
  if (places.length === 0 && !placed.by) return null;
  return (
    <div class="places">
      <ul>
        {places.slice(0, 6).map((place, i) => (
          <Line key={i} place={place} />
        ))}
      </ul>
      {places.length > 6 && <p class="soft">and {places.length - 6} more</p>}
      {placed.by && <p class="soft">made by {placed.by.join(", ")}</p>}
    </div>
  );
}

export function firstLine(placed: Placed, table: Place[]): Place | null {
  const [first] = placed.places ?? [];
  return first === undefined ? null : (table[first] ?? null);
}
