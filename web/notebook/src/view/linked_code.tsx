// Loop IR and WebAssembly side by side. A name that is chosen, in a list or by a click, stands out
// in both, and both show its first place.
import { useEffect, useRef, useState } from "preact/hooks";
import { inLoops, inWat, nameAt, sharedNames, type Match } from "../source/kernel_names.ts";

const mostLetters = 400_000; // of a text that is laid out at once

function rangesOf(pre: HTMLPreElement, matches: Match[]): Range[] {
  const text = pre.firstChild;
  if (!text) return [];
  return matches.map(({ from, to }) => {
    const range = document.createRange();
    range.setStart(text, from);
    range.setEnd(text, to);
    return range;
  });
}

function showFirst(pre: HTMLPreElement, range: Range | undefined): void {
  const box = pre.parentElement;
  if (!box || !range) return;
  const offset = range.getBoundingClientRect().top - box.getBoundingClientRect().top;
  if (offset < 0 || offset > box.clientHeight - 40) box.scrollTop += offset - box.clientHeight / 3;
}

export function LinkedCode({ loops, wat }: { loops: string; wat: string }) {
  const left = useRef<HTMLPreElement>(null);
  const right = useRef<HTMLPreElement>(null);
  const [name, setName] = useState("");
  const names = sharedNames(loops, wat);
  const [shownLoops, shownWat] = [loops.slice(0, mostLetters), wat.slice(0, mostLetters)];

  useEffect(() => {
    if (!left.current || !right.current || !name || !("highlights" in CSS)) return;
    const here = rangesOf(left.current, inLoops(shownLoops, name));
    const there = rangesOf(right.current, inWat(shownWat, name));
    CSS.highlights.set("linked", new Highlight(...here, ...there));
    showFirst(left.current, here[0]);
    showFirst(right.current, there[0]);
    return () => void CSS.highlights.delete("linked");
  }, [name, shownLoops, shownWat]);

  const pick = (text: string) => () => {
    const selection = getSelection();
    if (!selection?.isCollapsed || selection.anchorNode?.nodeType !== Node.TEXT_NODE) return;
    const clicked = nameAt(text, selection.anchorOffset);
    if (clicked && names.includes(clicked)) setName(clicked);
  };
  return (
    <div>
      <p class="pad bar">
        <label>
          Show in both{" "}
          <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
            <option value="">nothing</option>
            {names.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <span class="soft">Loops and buffers have the same names in both; a click works, too.</span>
      </p>
      <div class="split">
        <div class="pane">
          <h3>Loop IR</h3>
          <div class="long" role="region" aria-label="Loop IR" tabIndex={0}>
            <pre ref={left} onClick={pick(shownLoops)}>
              {shownLoops}
            </pre>
          </div>
        </div>
        <div class="pane">
          <h3>WebAssembly</h3>
          <div class="long" role="region" aria-label="WebAssembly text" tabIndex={0}>
            <pre ref={right} onClick={pick(shownWat)}>
              {shownWat}
            </pre>
          </div>
        </div>
      </div>
      {loops.length + wat.length > shownLoops.length + shownWat.length && (
        <p class="soft pad">The texts are cut: they are too long for a page.</p>
      )}
    </div>
  );
}
