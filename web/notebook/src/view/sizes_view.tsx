// A program over symbols at sizes that a person slides to: what a call costs there, as formulas and
// as numbers, and the predicted time along the size that was moved last.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Run } from "../engine/handle.ts";
import type { Dims, SizesInfo, SymbolInfo } from "../engine/protocol.ts";
import { MeasureSizes, useMeasuring } from "./measure_sizes_view.tsx";
import { big, bytes, milliseconds, plural } from "./quantities.ts";
import { SizesCurve } from "./sizes_curve.tsx";

const points = 24; // of the curve; each takes as long as a small compilation
const mostSize = 2 ** 40; // that the engine takes
const mostGuards = 4; // that are worth reading in a line

// The answer to the last of the questions asked; those in between are not put to the engine, which
// answers one after the other.
function useLatest(ask: () => Promise<SizesInfo>, key: string): [SizesInfo | null, string] {
  const [answer, setAnswer] = useState<{ info: SizesInfo | null; failure: string }>({
    info: null,
    failure: "",
  });
  const state = useRef({ isAsking: false, isStale: false, isGone: false, ask });
  state.current.ask = ask;
  useEffect(() => () => void (state.current.isGone = true), []);
  useEffect(() => {
    const { current } = state;
    current.isStale = true;
    const work = async () => {
      if (current.isAsking) return;
      current.isAsking = true;
      while (current.isStale && !current.isGone) {
        current.isStale = false;
        try {
          const info = await current.ask();
          if (!current.isGone) setAnswer({ info, failure: "" });
        } catch (error) {
          if (!current.isGone) setAnswer({ info: null, failure: (error as Error).message });
        }
      }
      current.isAsking = false;
    };
    void work();
  }, [key]);
  return [answer.info, answer.failure];
}

interface SliderProps {
  symbol: SymbolInfo;
  size: number;
  move(size: number): void;
}

function Slider({ symbol: { name, min, max, is_bounded: isBounded }, size, move }: SliderProps) {
  const take = (value: number) =>
    Number.isSafeInteger(value) && value >= 0 && value <= mostSize && move(value);
  return (
    <div class="slider">
      <code>{name}</code>
      <span class="soft">{isBounded ? `${min} to ${max}` : `${min} or more`}</span>
      <input
        type="range"
        aria-label={`size ${name}`}
        min={min}
        max={max}
        value={size}
        onInput={(event) => take(event.currentTarget.valueAsNumber)}
      />
      <input
        type="number"
        aria-label={`size ${name} as a number`}
        value={size}
        onInput={(event) => take(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}

function Served({ info }: { info: SizesInfo }) {
  if (info.refused !== undefined)
    return (
      <p class="served" role="status">
        <span aria-hidden="true">⊘ </span>
        <b class="bad">No program serves this size:</b> {info.refused}
      </p>
    );
  const { guards } = info;
  const shown = guards.slice(0, mostGuards);
  if (guards.length > mostGuards) shown.push(plural(guards.length - mostGuards, "more guard"));
  return (
    <p class="served" role="status">
      <b>One program serves every size</b> in range
      {guards.length > 0 && (
        <>
          {" "}
          where <span class="mono">{shown.join(", ")}</span>
        </>
      )}
      ; no size is compiled anew.
    </p>
  );
}

function Costs({ info }: { info: SizesInfo }) {
  const rows = [
    ["FLOP", info.flops, big],
    ["bytes moved", info.bytes, bytes],
    ["peak memory", info.peak, bytes],
  ] as const;
  return (
    <dl class="facts">
      {info.predicted !== undefined && (
        <>
          <dt>a call takes</dt>
          <dd>
            <b>{milliseconds(1e3 * info.predicted)}</b> <span class="soft">predicted</span>
          </dd>
        </>
      )}
      {rows.flatMap(([name, formula, spell]) => [
        <dt key={name}>{name}</dt>,
        <dd key={`${name} here`}>
          <b>{formula.here === undefined ? "too large" : spell(formula.here)}</b>{" "}
          <span class="mono soft">= {formula.text}</span>
        </dd>,
      ])}
      {info.arena_bytes !== undefined && (
        <>
          <dt>planned</dt>
          <dd>
            <b>{bytes(info.arena_bytes)}</b> <span class="soft">for temporaries</span>
          </dd>
        </>
      )}
    </dl>
  );
}

export function SizesView({ run }: { run: Run }) {
  const [dims, setDims] = useState<Dims>({});
  const [moved, setMoved] = useState("");
  const [info, failure] = useLatest(() => run.ask("sizes", { dims }), JSON.stringify(dims));
  const along = moved || info?.symbols[0]?.name || "";
  // What moves along the curve does not change it.
  const others = JSON.stringify([along, { ...dims, [along]: 0 }]);
  const [curved] = useLatest(
    () => run.ask("sizes", along ? { dims, along, points } : { dims }),
    others,
  );
  const measuring = useMeasuring(run, others);
  if (failure) return <p class="bad pad">{failure}</p>;
  if (!info) return <p class="soft pad">Reckoning what sizes cost…</p>;
  const sizeOf = (symbol: SymbolInfo) => dims[symbol.name] ?? symbol.hint;
  const here = info.symbols.find(({ name }) => name === along)?.here ?? 1;
  const all = Object.fromEntries(info.symbols.map((symbol) => [symbol.name, symbol.here]));
  const curve = curved?.curve ?? [];
  const canRun = ["simd128", "relaxed"].includes(run.info.target);
  return (
    <section class="sizes" aria-label="Sizes">
      <h3>At the size of a call</h3>
      {info.symbols.map((symbol) => (
        <Slider
          key={symbol.name}
          symbol={symbol}
          size={sizeOf(symbol)}
          move={(size) => {
            setMoved(symbol.name);
            setDims({ ...dims, [symbol.name]: size });
          }}
        />
      ))}
      <Served info={info} />
      <div class="costs">
        <Costs info={info} />
        <SizesCurve
          along={along}
          here={here}
          predicted={info.predicted}
          curve={curve}
          measured={measuring.measured}
        />
        {canRun && (
          <MeasureSizes
            measuring={measuring}
            canStart={info.refused === undefined && curve.length > 0}
            start={() => measuring.start(all, along, here, curve)}
          />
        )}
      </div>
    </section>
  );
}
