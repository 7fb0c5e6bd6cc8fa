// The graph after a step: a canvas, and the same as a list for those whom a canvas does not reach.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Run } from "../engine/handle.ts";
import { save } from "../storage/download.ts";
import { GraphCanvas } from "./canvas.ts";
import { remember } from "./drawn.ts";
import { families, type Family } from "./families.ts";
import { foldedAll, foldedAtFirst } from "./folding.ts";
import { GraphList } from "./graph_list.tsx";
import { NodeCard } from "./node_card.tsx";
import { matches } from "./paint.ts";
import { sceneOf, type Marks, type Scene } from "./scene.ts";
import { svgOf } from "./svg.ts";

interface Props {
  run: Run;
  step: number;
  marks: Marks;
  title: string;
}

const noMarks: Marks = new Map();

// The drawing of a step with these modules folded; null asks for the folding that fits its size.
async function load(run: Run, step: number, folded: string[] | null, marks: Marks) {
  const ask = { step, draw: true, char_width: 7 };
  let info = await run.ask("graph", { ...ask, folded: folded ?? [] });
  if (folded === null && info.drawing) {
    folded = foldedAtFirst(info.drawing.clusters, info.nodes.length);
    if (folded.length > 0) info = await run.ask("graph", { ...ask, folded });
  }
  if (!info.drawing) throw new Error("a graph came without a drawing");
  return { scene: sceneOf(info, info.drawing, marks), folded: folded ?? [] };
}

export function GraphView({ run, step, marks = noMarks, title }: Props) {
  const canvasRef = useRef<HTMLCanvasElement>(null);
  const painter = useRef<GraphCanvas | null>(null);
  const [folded, setFolded] = useState<string[] | null>(null);
  const [loaded, setLoaded] = useState<{ scene: Scene; folded: string[] } | null>(null);
  const [failure, setFailure] = useState("");
  const [chosen, setChosen] = useState<number | null>(null);
  const [query, setQuery] = useState("");
  // A node of the engine's answer to be chosen as soon as nothing folded hides it.
  const [wanted, setWanted] = useState<number | null>(null);
  const isWhole = useRef(false); // whether the next drawing is to be seen whole
  const [isList, setIsList] = useState(false);
  const scene = loaded?.scene ?? null;

  useEffect(() => {
    let isOld = false;
    load(run, step, folded, marks)
      .then((next) => {
        if (isOld) return;
        remember(run, next.scene, title);
        setLoaded(next);
        setFailure("");
        if (wanted === null) setChosen(null);
      })
      .catch((error: unknown) => !isOld && setFailure(String((error as Error).message)));
    return () => void (isOld = true);
  }, [run, step, folded, marks]);

  const fold = (key: string) => {
    const now = loaded?.folded ?? [];
    setFolded(now.includes(key) ? now.filter((one) => one !== key) : [...now, key]);
  };
  const refold = (keys: string[]) => {
    isWhole.current = true;
    setFolded(keys);
  };
  const events = useRef({ choose: setChosen, fold });
  events.current = { choose: setChosen, fold };

  useEffect(() => {
    if (!canvasRef.current) return;
    const made = new GraphCanvas(canvasRef.current, {
      choose: (node) => events.current.choose(node),
      fold: (key) => events.current.fold(key),
    });
    painter.current = made;
    return () => made.dispose();
  }, [isList]);
  useEffect(() => {
    if (scene) painter.current?.show(scene, { whole: isWhole.current });
    isWhole.current = false;
  }, [scene, isList]);
  useEffect(() => painter.current?.choose(chosen), [chosen, scene, isList]);
  useEffect(() => painter.current?.search(query), [query, isList]);

  // What hides a node is unfolded, from the outermost in, until it is there.
  useEffect(() => {
    if (wanted === null || !loaded) return;
    const box = loaded.scene.info.drawing?.boxes[wanted];
    const hiding = typeof box === "number" ? loaded.scene.clusters[box] : undefined;
    if (hiding) return setFolded(loaded.folded.filter((key) => key !== hiding.key));
    const at = loaded.scene.nodes.findIndex(({ index }) => index === wanted);
    setChosen(at);
    setWanted(null);
    painter.current?.approach(at);
  }, [wanted, loaded]);

  // Of the whole graph, what is folded away included.
  const found = (scene && query ? scene.info.nodes : []).flatMap((node, index) =>
    matches(node, query.toLowerCase()) ? [index] : [],
  );
  const goToNext = () => {
    const now = (chosen !== null && scene?.nodes[chosen]?.index) || 0;
    const next = chosen === null ? found[0] : (found.find((index) => index > now) ?? found[0]);
    if (next !== undefined) setWanted(next);
  };
  // As everywhere: neither what comes in nor what goes out.
  const numNodes = (scene?.info.nodes ?? []).filter(
    ({ op }) => op !== "param" && op !== "return",
  ).length;
  const chosenNode = chosen === null ? null : (scene?.nodes[chosen] ?? null);
  return (
    <div class="graph">
      <div class="bar">
        <input
          type="search"
          placeholder="find a node"
          aria-label="Find a node by name, op or module"
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") goToNext();
          }}
        />
        {query && <span class="soft">{found.length} found; Enter for the next</span>}
        <span class="space" />
        {!isList && (
          <>
            <button onClick={() => painter.current?.zoom(1.25)} aria-label="Zoom in">
              +
            </button>
            <button onClick={() => painter.current?.zoom(0.8)} aria-label="Zoom out">
              −
            </button>
            <button onClick={() => painter.current?.fit()}>Fit</button>
          </>
        )}
        {scene && scene.clusters.length > 0 && (
          <>
            <button onClick={() => refold(foldedAll(scene.info.drawing?.clusters ?? []))}>
              Fold
            </button>
            <button onClick={() => refold([])}>Unfold</button>
          </>
        )}
        <button
          disabled={!scene}
          onClick={() => scene && save(`${title}.svg`, "image/svg+xml", svgOf(scene, title))}
        >
          SVG
        </button>
        <button aria-pressed={isList} onClick={() => setIsList(!isList)}>
          List
        </button>
      </div>
      {failure && (
        <p class="failure" role="alert">
          {failure}
        </p>
      )}
      {isList ? (
        scene && <GraphList scene={scene} chosen={chosen} choose={setChosen} fold={fold} />
      ) : (
        <canvas
          ref={canvasRef}
          tabIndex={0}
          role="img"
          aria-label={`${title}: ${numNodes} nodes. Arrow keys walk from node
            to node, plus and minus zoom; the List button shows the same as a list.`}
        />
      )}
      <div class="legend" aria-hidden="true">
        {(Object.keys(families) as Family[]).map((family) => (
          <span key={family}>
            <b class={`family-${family}`}>{families[family].sign}</b> {families[family].word}
          </span>
        ))}
        {marks.size > 0 && (
          <span>
            <b class="added">+ ~</b> touched by this pass
          </span>
        )}
      </div>
      <div aria-live="polite">
        {chosenNode && scene && <NodeCard node={chosenNode} scene={scene} choose={setChosen} />}
      </div>
    </div>
  );
}
