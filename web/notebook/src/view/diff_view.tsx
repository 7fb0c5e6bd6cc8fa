// What a pass changed, node by node, as text: − gone, + new, ~ the same node with another text.
import { useState } from "preact/hooks";
import type { DiffInfo, DiffNode } from "../engine/protocol.ts";
import { firstLine } from "./places.tsx";

const most = 60;

interface Line {
  sign: "−" | "+" | "~";
  text: string;
  node: DiffNode;
}

function linesOf(diff: DiffInfo): Line[] {
  const lines: Line[] = diff.removed.map((node) => ({ sign: "−", text: node.text, node }));
  for (const node of diff.changed) {
    lines.push({ sign: "−", text: node.before ?? "", node });
    lines.push({ sign: "~", text: node.text, node });
  }
  for (const node of diff.added) lines.push({ sign: "+", text: node.text, node });
  return lines;
}

const classes = { "−": "removed", "+": "inserted", "~": "inserted" };
const words = { "−": "removed", "+": "added", "~": "changed" };

export function DiffView({ diff }: { diff: DiffInfo }) {
  const [isAll, setIsAll] = useState(false);
  const lines = linesOf(diff);
  if (lines.length === 0) return <p class="soft pad">This pass changed nothing.</p>;
  const shown = isAll ? lines : lines.slice(0, most);
  return (
    <div class="diff" role="region" aria-label="What the pass changed" tabIndex={0}>
      {shown.map(({ sign, text, node }, i) => {
        const place = firstLine(node, diff.table ?? []);
        const where = place?.file ? `${place.file.replace(/^.*\//, "")}:${place.line}` : "";
        return (
          <div key={i} class={classes[sign]} title={place?.code?.trim() ?? ""}>
            <span class="sign" aria-label={words[sign]}>
              {sign}
            </span>
            <code>{text}</code>
            {where && <span class="where">{where}</span>}
          </div>
        );
      })}
      {lines.length > shown.length && (
        <button onClick={() => setIsAll(true)}>Show all {lines.length} lines</button>
      )}
    </div>
  );
}
