// The options of one pass: a field each, with the default and what it means.
import { useState } from "preact/hooks";
import type { PassInfo } from "../engine/protocol.ts";

interface Props {
  pass: PassInfo;
  values: Record<string, string>;
  change(options: Record<string, string>): void; // those that differ from the default
}

export function PassOptions({ pass, values, change }: Props) {
  const [typed, setTyped] = useState(values);
  const apply = () => {
    const differing = pass.options
      .map(({ name, default: usual }) => [name, typed[name] ?? usual, usual] as const)
      .filter(([, value, usual]) => value !== usual)
      .map(([name, value]) => [name, value] as const);
    change(Object.fromEntries(differing));
  };
  return (
    <form class="options" onSubmit={(event) => (event.preventDefault(), apply())}>
      {pass.options.map(({ name, default: usual, doc }) => (
        <label key={name}>
          <span class="mono">{name}</span>
          <input
            value={typed[name] ?? usual}
            placeholder={usual || "(empty)"}
            onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
          />
          <span class="soft">{doc}</span>
        </label>
      ))}
      <button type="submit">Apply options</button>
    </form>
  );
}
