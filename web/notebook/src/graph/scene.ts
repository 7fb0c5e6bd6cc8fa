// A drawing ready to be painted: boxes and lines with the texts they show, and an index that finds
// what lies in a rectangle or under a point without looking at everything.
import type { Box, DrawingInfo, GraphInfo, GraphNode } from "../engine/protocol.ts";
import { familyOf, type Family } from "./families.ts";

export interface SceneNode {
  index: number; // in the engine's answer
  box: Box;
  family: Family;
  label: string;
  type: string;
  mark: "added" | "changed" | null; // what the pass did to it
  node: GraphNode;
}
export interface SceneCluster {
  key: string;
  label: string;
  box: Box;
  isFolded: boolean;
  nodes: number;
  depth: number;
  hasMarks: boolean;
  hidden: GraphNode[]; // the nodes that it stands for, when it is folded
}
export interface SceneRoute {
  points: number[];
  box: Box;
  from: number;
  to: number;
}
export interface Scene {
  width: number;
  height: number;
  nodes: SceneNode[];
  clusters: SceneCluster[]; // outer before inner
  routes: SceneRoute[];
  grid: Grid;
  info: GraphInfo;
}

const tile = 400; // of the grid, in the drawing's units

// Indices of nodes and routes by the tiles they touch.
export class Grid {
  private readonly tiles = new Map<string, { nodes: number[]; routes: number[] }>();

  add(kind: "nodes" | "routes", index: number, box: Box): void {
    this.visit(box, (key) => {
      const entry = this.tiles.get(key) ?? { nodes: [], routes: [] };
      entry[kind].push(index);
      this.tiles.set(key, entry);
    });
  }

  within(box: Box): { nodes: Set<number>; routes: Set<number> } {
    const found = { nodes: new Set<number>(), routes: new Set<number>() };
    this.visit(box, (key) => {
      const entry = this.tiles.get(key);
      for (const index of entry?.nodes ?? []) found.nodes.add(index);
      for (const index of entry?.routes ?? []) found.routes.add(index);
    });
    return found;
  }

  private visit([x, y, width, height]: Box, touch: (key: string) => void): void {
    for (let i = Math.floor(x / tile); i <= Math.floor((x + width) / tile); ++i)
      for (let j = Math.floor(y / tile); j <= Math.floor((y + height) / tile); ++j)
        touch(`${i},${j}`);
  }
}

function boxAround(points: number[]): Box {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i + 1 < points.length; i += 2) {
    const [x = 0, y = 0] = [points[i], points[i + 1]];
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
  }
  return [left, top, right - left, bottom - top];
}

// What stands in a box: a parameter shows its name, a fused group how many ops it holds.
export function labelOf(node: GraphNode): string {
  if (node.inner_nodes !== undefined) return `${node.op} ${node.inner_nodes}`;
  return node.op === "param" && node.name ? node.name : node.op;
}

export type Marks = ReadonlyMap<string, "added" | "changed">;

export function sceneOf(info: GraphInfo, drawing: DrawingInfo, marks: Marks): Scene {
  const grid = new Grid();
  const nodes: SceneNode[] = [];
  const marked = new Set<number>(); // clusters that hide a marked node
  const hidden = new Map<number, GraphNode[]>();
  info.nodes.forEach((node, index) => {
    const box = drawing.boxes[index];
    const mark = (node.name && marks.get(node.name)) || null;
    if (typeof box === "number") {
      if (mark) marked.add(box);
      const others = hidden.get(box);
      if (others) others.push(node);
      else hidden.set(box, [node]);
    }
    if (!Array.isArray(box)) return;
    grid.add("nodes", nodes.length, box);
    const [type = ""] = node.types;
    nodes.push({ index, box, family: familyOf(node), label: labelOf(node), type, mark, node });
  });
  const depths: number[] = [];
  const clusters = drawing.clusters.map((cluster, i): SceneCluster => {
    const depth = cluster.parent < 0 ? 0 : (depths[cluster.parent] ?? 0) + 1;
    depths.push(depth);
    const outer = drawing.clusters[cluster.parent]?.module;
    const isInside = outer && cluster.module.startsWith(`${outer}.`);
    const label = isInside ? cluster.module.slice(outer.length + 1) : cluster.module;
    return {
      key: cluster.key,
      label: label || cluster.key,
      box: cluster.box,
      isFolded: cluster.folded,
      nodes: cluster.nodes,
      depth,
      hasMarks: marked.has(i),
      hidden: hidden.get(i) ?? [],
    };
  });
  const routes = drawing.routes.map(({ points, from, to }, i): SceneRoute => {
    const box = boxAround(points);
    grid.add("routes", i, box);
    return { points, box, from, to };
  });
  const { width, height } = drawing;
  return { width, height, nodes, clusters, routes, grid, info };
}

const holds = ([x, y, width, height]: Box, px: number, py: number) =>
  px >= x && px <= x + width && py >= y && py <= y + height;

export function nodeAt(scene: Scene, x: number, y: number): number | null {
  for (const i of scene.grid.within([x, y, 0, 0]).nodes)
    if (holds((scene.nodes[i] as SceneNode).box, x, y)) return i;
  return null;
}

// The innermost cluster whose title, or whole box when folded, is there.
export function clusterAt(scene: Scene, x: number, y: number): SceneCluster | null {
  let found: SceneCluster | null = null;
  for (const cluster of scene.clusters) {
    const [left, top, width] = cluster.box;
    const title: Box = [left, top, width, 20];
    if (holds(cluster.isFolded ? cluster.box : title, x, y)) found = cluster;
  }
  return found;
}

// The next node in a direction: the nearest along it, with sideways distance counting double.
export function neighbour(scene: Scene, from: number, dx: number, dy: number): number {
  const start = scene.nodes[from];
  if (!start) return 0;
  const middle = ({ box: [x, y, w, h] }: SceneNode) => [x + w / 2, y + h / 2] as const;
  const [sx, sy] = middle(start);
  let best = from;
  let least = Infinity;
  scene.nodes.forEach((node, i) => {
    const [x, y] = middle(node);
    const along = (x - sx) * dx + (y - sy) * dy;
    const across = Math.abs((x - sx) * dy) + Math.abs((y - sy) * dx);
    if (i === from || along <= 1) return;
    if (along + 2 * across < least) [best, least] = [i, along + 2 * across];
  });
  return best;
}
