// The graph as a list, in execution order: what the canvas shows, for a screen reader or for
// reading.
import { useState } from "preact/hooks";
import { plural } from "../view/quantities.ts";
import { families } from "./families.ts";
import type { Scene, SceneNode } from "./scene.ts";

interface Props {
  scene: Scene;
  chosen: number | null;
  choose(node: number | null): void;
  fold(key: string): void;
}

const page = 200; // rows at once

export function operandsOf(scene: Scene, node: SceneNode): string[] {
  return scene.info.edges
    .filter(([, , to]) => to === node.index)
    .map(([from]) => {
      const source = scene.info.nodes[from];
      return source?.name ? `%${source.name}` : (source?.op ?? "");
    });
}

export function GraphList({ scene, chosen, choose, fold }: Props) {
  const [first, setFirst] = useState(0);
  const { nodes } = scene;
  const folded = scene.clusters.filter(({ isFolded }) => isFolded);
  return (
    <div class="graph-list">
      {folded.length > 0 && (
        <p class="bar">
          Folded:
          {folded.map(({ key, nodes: count }) => (
            <button key={key} onClick={() => fold(key)} title="Unfold">
              {key} ({plural(count, "node")})
            </button>
          ))}
        </p>
      )}
      <ol start={first + 1}>
        {nodes.slice(first, first + page).map((node, i) => (
          <li key={node.index}>
            <button
              class="row"
              aria-pressed={chosen === first + i}
              onClick={() => choose(chosen === first + i ? null : first + i)}
            >
              <b class={`family-${node.family}`} aria-hidden="true">
                {families[node.family].sign}
              </b>{" "}
              {node.mark && <b class="added">{node.mark}: </b>}
              {node.node.name && `%${node.node.name} = `}
              {node.node.op}({operandsOf(scene, node).join(", ")}){" "}
              <i>{node.node.types.join(", ")}</i>
            </button>
          </li>
        ))}
      </ol>
      {nodes.length > page && (
        <p class="bar">
          <button disabled={first === 0} onClick={() => setFirst(Math.max(0, first - page))}>
            Previous
          </button>
          <span>
            {first + 1} to {Math.min(nodes.length, first + page)} of {nodes.length}
          </span>
          <button disabled={first + page >= nodes.length} onClick={() => setFirst(first + page)}>
            Next
          </button>
        </p>
      )}
    </div>
  );
}
