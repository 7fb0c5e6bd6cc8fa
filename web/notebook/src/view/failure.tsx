// An error, in the words of the compiler, with the lines it is about.
import type { CellFailure } from "../notebook/cell.ts";
import { save } from "../storage/download.ts";
import { Places } from "./places.tsx";

export function Failure({ failure, source }: { failure: CellFailure; source: string }) {
  const { engine } = failure;
  return (
    <div class="failure" role="alert">
      <p>
        <b>Error{engine ? ` (${engine.code})` : ""}:</b> {failure.message}
      </p>
      {failure.source && (
        <Pointer source={source} from={failure.source.from} to={failure.source.to} />
      )}
      {engine?.rows && (
        <ul class="mono">
          {engine.rows.map((row) => (
            <li key={row}>{row}</li>
          ))}
        </ul>
      )}
      {engine && <Places placed={engine} table={engine.table ?? []} />}
      {engine?.notes?.map((note) => (
        <div key={note.message}>
          <p>note: {note.message}</p>
          <Places placed={note} table={engine.table ?? []} />
        </div>
      ))}
      {failure.hint && <p>{failure.hint}</p>}
      {engine?.reproducer && (
        <button onClick={() => save("reproducer.lathe", "text/plain", engine.reproducer ?? "")}>
          Download a reproducer
        </button>
      )}
    </div>
  );
}

// The line of the text that is wrong, with the place underlined.
function Pointer({ source, from, to }: { source: string; from: number; to: number }) {
  const begin = source.lastIndexOf("\n", from - 1) + 1;
  const after = source.indexOf("\n", from);
  const end = after < 0 ? source.length : after;
  const stop = Math.max(from, Math.min(to, end));
  return (
    <pre class="pointer">
      {source.slice(begin, from)}
      <mark>{source.slice(from, stop) || " "}</mark>
      {source.slice(stop, end)}
    </pre>
  );
}
