// A cell from another notebook program: shown as text, written back as it was.
import type { Cell } from "../notebook/cell.ts";
import { LongText } from "./long_text.tsx";

export function ForeignView({ cell }: { cell: Cell }) {
  return <LongText text={cell.source.value} show={(part) => <pre class="pad">{part}</pre>} />;
}
