// Everything about one node: its types and attributes, its neighbours, and its lines of Python.
import { Places } from "../view/places.tsx";
import { families } from "./families.ts";
import type { Scene, SceneNode } from "./scene.ts";

interface Props {
  node: SceneNode;
  scene: Scene;
  choose(node: number): void;
}

export function NodeCard({ node, scene, choose }: Props) {
  const { node: info } = node;
  const at = new Map(scene.nodes.map((one, i) => [one.index, i]));
  const link = (index: number) => {
    const target = at.get(index);
    const other = scene.info.nodes[index];
    const text = other?.name ? `%${other.name}` : (other?.op ?? "?");
    if (target === undefined) return <code key={index}>{text}</code>;
    return (
      <button key={index} class="link" onClick={() => choose(target)}>
        {text}
      </button>
    );
  };
  const links = (indices: number[]) =>
    [...new Set(indices)].flatMap((index, i) => (i > 0 ? [", ", link(index)] : [link(index)]));
  const before = scene.info.edges.filter(([, , to]) => to === node.index).map(([from]) => from);
  const after = scene.info.edges.filter(([from]) => from === node.index).map(([, , to]) => to);
  return (
    <div class="node-card">
      <p>
        <b class={`family-${node.family}`}>{families[node.family].sign}</b>{" "}
        <code>{info.name ? `%${info.name} = ${info.op}` : info.op}</code>{" "}
        <span class="soft">
          {families[node.family].word}, {info.types.join(", ")}
          {info.in_place ? ", in place" : ""}
          {info.module ? `, in ${info.module}` : ""}
        </span>
      </p>
      {info.attrs && (
        <p class="mono">
          {Object.entries(info.attrs)
            .map(([name, value]) => `${name} = ${value}`)
            .join(", ")}
        </p>
      )}
      <p>
        reads {before.length > 0 ? links(before) : "nothing"}; read by{" "}
        {after.length > 0 ? links(after) : "nothing"}
      </p>
      <Places placed={info} table={scene.info.table} />
    </div>
  );
}
