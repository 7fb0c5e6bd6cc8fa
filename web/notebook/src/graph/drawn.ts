// The scene that was drawn last for each run: what a saved notebook shows as a picture.
import type { Run } from "../engine/handle.ts";
import type { Scene } from "./scene.ts";
import { svgOf } from "./svg.ts";

const scenes = new WeakMap<Run, { scene: Scene; title: string }>();

export function remember(run: Run, scene: Scene, title: string): void {
  scenes.set(run, { scene, title });
}

const mostBoxes = 300; // more would swell the file for a picture that nobody can read

export function pictureOf(run: Run): string | null {
  const drawn = scenes.get(run);
  if (!drawn || drawn.scene.nodes.length > mostBoxes) return null;
  return svgOf(drawn.scene, drawn.title);
}
