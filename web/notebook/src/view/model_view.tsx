// A model cell: what came in, what goes out, and the graph as PyTorch wrote it.
import { useState } from "preact/hooks";
import type { OpenModel, Run } from "../engine/handle.ts";
import type { ModelInfo, WeightInfo } from "../engine/protocol.ts";
import { engine } from "../engine/engine.ts";
import { GraphView } from "../graph/graph_view.tsx";
import type { Marks } from "../graph/scene.ts";
import { big, bytes, count, plural } from "./quantities.ts";

const noMarks: Marks = new Map();

function rangeOf({ min, max }: { min?: number; max?: number }): string {
  return `from ${min ?? "any"} to ${max ?? "any"}`;
}

function Facts({ info }: { info: ModelInfo }) {
  const dims = Object.entries(info.dims);
  return (
    <dl class="facts">
      <dt>inputs</dt>
      <dd>
        {info.inputs.map((input) => (
          <div key={input.name} class="mono">
            {input.name}: {input.type}
          </div>
        ))}
      </dd>
      <dt>outputs</dt>
      <dd>
        {info.outputs.map((output, i) => (
          <div key={i} class="mono">
            {output ? output.type : "none"}
          </div>
        ))}
      </dd>
      {dims.length > 0 && (
        <>
          <dt>sizes left open</dt>
          <dd>
            {dims.map(([symbol, dim]) => (
              <div key={symbol}>
                <span class="mono">
                  {symbol} = {dim.value}
                </span>
                , {rangeOf(dim)}; write{" "}
                <span class="mono">
                  {symbol}={dim.value}
                </span>{" "}
                behind the name for another size
              </div>
            ))}
          </dd>
        </>
      )}
      <dt>written by</dt>
      <dd>{info.producer || "unknown"}</dd>
    </dl>
  );
}

function Weights({ model }: { model: OpenModel }) {
  const [weights, setWeights] = useState<WeightInfo[] | null>(null);
  const [failure, setFailure] = useState("");
  const open = async () => {
    if (weights) return;
    try {
      const { weights: list } = await engine.request("weights", { model: await model.handle.id() });
      setWeights(list);
    } catch (error) {
      setFailure((error as Error).message);
    }
  };
  const { info } = model;
  return (
    <details onToggle={(event) => event.currentTarget.open && void open()}>
      <summary>
        {plural(info.num_weights, "weight")}, {big(info.parameters)} elements,{" "}
        {bytes(info.weight_bytes)}
        {info.has_weights ? " in the file" : "; values come from a seed"}
      </summary>
      {failure && <p role="alert">{failure}</p>}
      {weights && (
        <div class="table" role="region" aria-label="Weights" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th>name</th>
                <th>type</th>
                <th>kind</th>
                <th>size</th>
              </tr>
            </thead>
            <tbody>
              {weights.slice(0, 500).map((weight) => (
                <tr key={weight.name}>
                  <td>{weight.name}</td>
                  <td class="mono">{weight.type}</td>
                  <td>{weight.kind}</td>
                  <td>{bytes(weight.num_bytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {weights.length > 500 && <p class="soft">and {count(weights.length - 500)} more</p>}
        </div>
      )}
    </details>
  );
}

export function ModelView({ model, graph }: { model: OpenModel; graph: Run }) {
  return (
    <div class="model">
      <div class="pad">
        <Facts info={model.info} />
        {model.info.num_weights > 0 && <Weights model={model} />}
      </div>
      <GraphView run={graph} step={0} marks={noMarks} title={model.info.name} />
    </div>
  );
}
