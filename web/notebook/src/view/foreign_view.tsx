// A cell from another notebook program: shown as text, written back as it was.
import type { Cell } from "../notebook/cell.ts";

export function ForeignView({ cell }: { cell: Cell }) {
  return <pre class="pad">{cell.source.value}</pre>;
}
