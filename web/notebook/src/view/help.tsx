// What `?` shows: the keys, from the table that drives them.
import { useEffect, useRef } from "preact/hooks";
import type { Key } from "./keys.ts";

const graphKeys: [string, string][] = [
  ["arrows", "in a graph: walk from node to node"],
  ["+ − F", "in a graph: zoom in, zoom out, fit"],
  ["← →", "in the passes: walk along the chips"],
  ["Space", "on a chip: switch the pass on or off"],
  ["Alt-← Alt-→", "on a chip: move the pass"],
  ["Delete", "on a chip: take the pass out"],
];

// As they stand on a keyboard.
const signs: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓" };
const printed = (keys: string) =>
  keys
    .replace(/Arrow\w+/, (name) => signs[name] ?? name)
    .replace(/\b[a-z]\b/g, (letter) => letter.toUpperCase());

export function Help({ table, close }: { table: Key[]; close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    heading.current?.focus(); // the button at the end would scroll there
  }, []);
  const rows = [
    ...table.filter(({ does }) => does).map(({ keys, does }) => [printed(keys), does] as const),
    ...graphKeys,
  ];
  return (
    <dialog ref={dialog} onClose={close} aria-label="Keys">
      <h2 ref={heading} tabIndex={-1}>
        Keys
      </h2>
      <p class="soft">While a cell has the focus and its text is not open.</p>
      <table>
        <tbody>
          {rows.map(([keys, does]) => (
            <tr key={keys}>
              <th scope="row">
                <kbd>{keys}</kbd>
              </th>
              <td>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button class="primary" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}
