// A long text by pieces: what nobody reads at once is not made into elements at once.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { beginning, mostLetters } from "./beginning.ts";
import { bytes } from "./quantities.ts";

export function LongText({
  text,
  show,
}: {
  text: string;
  show(part: string): ComponentChildren;
}) {
  const [letters, setLetters] = useState(mostLetters);
  const part = beginning(text, letters);
  return (
    <>
      {show(part)}
      {part.length < text.length && (
        <p class="cut pad">
          <b>
            The first {bytes(part.length)} of {bytes(text.length)} are shown;
          </b>{" "}
          the rest is kept.{" "}
          <button onClick={() => setLetters(letters + mostLetters)}>Show more</button>
        </p>
      )}
    </>
  );
}
