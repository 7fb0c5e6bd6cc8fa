// The IR after a step as text. Long texts come in pieces, because a browser lays out all it is
// given.
import { useEffect, useState } from "preact/hooks";
import type { Run } from "../engine/handle.ts";

const piece = 400; // lines

export function TextView({ run, step }: { run: Run; step: number }) {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    let isOld = false;
    setText(null);
    run
      .ask("text", { step })
      .then((answer) => !isOld && setText(answer.text))
      .catch((error: unknown) => !isOld && setText(String((error as Error).message)));
    return () => void (isOld = true);
  }, [run, step]);
  return text === null ? null : <LongText text={text} label="Text of the IR" />;
}

export function LongText({ text, label }: { text: string; label: string }) {
  const [shown, setShown] = useState(piece);
  const lines = text.split("\n");
  return (
    <div class="long" role="region" aria-label={label} tabIndex={0}>
      <pre>{lines.slice(0, shown).join("\n")}</pre>
      {lines.length > shown && (
        <button onClick={() => setShown(shown + 4 * piece)}>
          Show more ({lines.length - shown} lines are left)
        </button>
      )}
    </div>
  );
}
