// Which modules a graph opens with folded: small graphs show everything, large ones their outline.
import type { ClusterInfo } from "../engine/protocol.ts";

const mostOpen = 160; // boxes

function depthsOf(clusters: ClusterInfo[]): number[] {
  const depths: number[] = [];
  for (const { parent } of clusters) depths.push(parent < 0 ? 0 : (depths[parent] ?? 0) + 1);
  return depths;
}

// Folds the deepest level first, then further out, until few enough boxes are left.
export function foldedAtFirst(clusters: ClusterInfo[], numNodes: number): string[] {
  const depths = depthsOf(clusters);
  let folded: string[] = [];
  let shown = numNodes;
  for (let depth = Math.max(0, ...depths); depth >= 0 && shown > mostOpen; --depth) {
    const level = clusters.filter(({ nodes }, i) => depths[i] === depth && nodes > 1);
    const hidden = level.reduce((sum, { nodes }) => sum + nodes, 0);
    if (hidden === 0) continue;
    folded = level.map(({ key }) => key);
    const outer = clusters.filter((_, i) => (depths[i] ?? 0) < depth).length;
    shown = numNodes - hidden + level.length + outer;
  }
  return folded;
}

export function foldedAll(clusters: ClusterInfo[]): string[] {
  return clusters.filter(({ parent }) => parent < 0).map(({ key }) => key);
}
