// The passes of a pipeline in order. A chip selects its step; it is moved by dragging or with Alt
// and the arrow keys, switched with Space, and taken out with Delete.
import { useRef, useState } from "preact/hooks";
import type { StepInfo } from "../engine/protocol.ts";
import type { Chip } from "../source/pipeline.ts";
import { summary } from "./changes.ts";
import { milliseconds } from "./quantities.ts";

export interface ChipStep extends Chip {
  step: number | null; // in the run; null when it is off or was not reached
  info: StepInfo | null;
  isCulprit: boolean; // the step that the pipeline stopped at
}

interface Props {
  chips: ChipStep[];
  selected: number | null; // a step of the run; 0 is the import
  select(step: number): void;
  toggle(index: number): void;
  move(from: number, to: number): void;
  remove(index: number): void;
}

function describe(chip: ChipStep): string {
  if (!chip.isOn) return "switched off";
  if (chip.isCulprit) return "stopped here";
  if (!chip.info) return "not run";
  return summary(chip.info);
}

export function Chips({ chips, selected, select, toggle, move, remove }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const [target, setTarget] = useState<number | null>(null);
  const dragged = useRef<number | null>(null);
  const slowest = Math.max(...chips.map(({ info }) => info?.milliseconds ?? 0), 0.001);

  const focusChip = (index: number) =>
    list.current?.querySelectorAll<HTMLElement>(".chip")[index]?.focus();

  const key = (event: KeyboardEvent, i: number) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && event.altKey) {
      const to = Math.max(0, Math.min(chips.length - 1, i + step));
      if (to === i) return;
      move(i, to);
      setTimeout(() => focusChip(to), 60);
    } else if (step && !event.ctrlKey && !event.metaKey) focusChip(i + step);
    else if (event.key === " ") toggle(i);
    else if (event.key === "Delete" || event.key === "Backspace") remove(i);
    else if (event.key === "Enter") {
      const at = chips[i]?.step;
      if (at !== null && at !== undefined) select(at);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      class="chips"
      ref={list}
      role="group"
      aria-label="Passes in order. Left and right walk,
      Space switches, Alt with an arrow moves, Delete takes out, Enter selects."
    >
      {chips.map((chip, i) => {
        const isSelected = chip.step !== null && chip.step === selected;
        const what = describe(chip);
        const time = chip.info ? milliseconds(chip.info.milliseconds) : "";
        const glyph = chip.isCulprit ? "✗" : !chip.isOn ? "○" : chip.info?.changed ? "●" : "·";
        return (
          <div
            key={`${chip.text} ${i}`}
            class={[
              "chip",
              isSelected && "selected",
              !chip.isOn && "off",
              chip.isCulprit && "culprit",
              target === i && "target",
            ]
              .filter(Boolean)
              .join(" ")}
            draggable
            onDragStart={(event) => {
              dragged.current = i;
              event.dataTransfer?.setData("text/plain", chip.text);
            }}
            onDragOver={(event) => {
              if (dragged.current === null) return;
              event.preventDefault();
              setTarget(i);
            }}
            onDragEnd={() => ((dragged.current = null), setTarget(null))}
            onDrop={(event) => {
              event.preventDefault();
              event.stopPropagation();
              if (dragged.current !== null && dragged.current !== i) move(dragged.current, i);
              dragged.current = null;
              setTarget(null);
            }}
            tabIndex={isSelected || (selected === null && i === 0) ? 0 : -1}
            role="button"
            aria-pressed={isSelected}
            aria-label={`${chip.text}, ${what}${time ? `, ${time}` : ""}`}
            title={chip.why ? `${chip.pass}: ${chip.why}` : chip.text}
            onKeyDown={(event) => key(event, i)}
            onClick={() => {
              if (chip.step !== null) select(chip.step);
              else if (!chip.isOn) toggle(i);
            }}
          >
            <span class="name">
              <span aria-hidden="true">{glyph} </span>
              {chip.text}
            </span>
            <span class="what">
              {what}
              {time && ` · ${time}`}
            </span>
            {chip.info && (
              <span
                class="cost"
                style={{ width: `${(100 * chip.info.milliseconds) / slowest}%` }}
              />
            )}
            <button
              class="switch"
              tabIndex={-1}
              aria-label={`switch ${chip.pass} ${chip.isOn ? "off" : "on"}`}
              title={chip.isOn ? "switch off" : "switch on"}
              onClick={(event) => (event.stopPropagation(), toggle(i))}
            >
              {chip.isOn ? "✓" : "–"}
            </button>
          </div>
        );
      })}
    </div>
  );
}
