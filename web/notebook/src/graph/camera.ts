// Which part of a drawing is seen, and how large.
import type { Box } from "../engine/protocol.ts";

export interface Camera {
  x: number; // of the drawing, at the view's left upper corner
  y: number;
  scale: number; // pixels for each of the drawing's units
}

const least = 0.02;
const most = 3;
const room = 24; // pixels around what is fitted

// The scale at which all of a drawing is seen; no larger than it was drawn.
function wholeScale(width: number, height: number, viewWidth: number, viewHeight: number): number {
  const across = Math.max(1, viewWidth - room) / Math.max(width, 1);
  const down = Math.max(1, viewHeight - room) / Math.max(height, 1);
  return Math.min(1, across, down);
}

export function fitted(
  width: number,
  height: number,
  viewWidth: number,
  viewHeight: number,
): Camera {
  const scale = wholeScale(width, height, viewWidth, viewHeight);
  return { scale, x: (width - viewWidth / scale) / 2, y: (height - viewHeight / scale) / 2 };
}

// A readable start: all of it when that can be read, or else its top.
export function opening(
  width: number,
  height: number,
  viewWidth: number,
  viewHeight: number,
): Camera {
  const all = fitted(width, height, viewWidth, viewHeight);
  if (all.scale >= 0.6) return all;
  const scale = Math.max(all.scale, Math.min(0.75, (viewWidth - 24) / Math.max(width, 1), 1));
  const readable = Math.max(scale, 0.45);
  return { scale: readable, x: (width - viewWidth / readable) / 2, y: -12 / readable };
}

// Out to a fiftieth, or to where a large drawing is seen whole; `whole` is its scale there.
export function zoomed(
  camera: Camera,
  factor: number,
  px: number,
  py: number,
  whole = least,
): Camera {
  const scale = Math.min(most, Math.max(Math.min(least, whole), camera.scale * factor));
  const x = camera.x + px / camera.scale - px / scale;
  const y = camera.y + py / camera.scale - py / scale;
  return { x, y, scale };
}

// Moves as little as it takes to have the box in view.
export function showing(camera: Camera, box: Box, viewWidth: number, viewHeight: number): Camera {
  const room = 20 / camera.scale;
  const [width, height] = [viewWidth / camera.scale, viewHeight / camera.scale];
  let { x, y } = camera;
  if (box[0] - room < x) x = box[0] - room;
  if (box[0] + box[2] + room > x + width) x = box[0] + box[2] + room - width;
  if (box[1] - room < y) y = box[1] - room;
  if (box[1] + box[3] + room > y + height) y = box[1] + box[3] + room - height;
  return { x, y, scale: camera.scale };
}

// Whether any of a drawing is in view.
export function isInView(
  camera: Camera,
  width: number,
  height: number,
  viewWidth: number,
  viewHeight: number,
): boolean {
  const [x, y, w, h] = seen(camera, viewWidth, viewHeight);
  return x < width && x + w > 0 && y < height && y + h > 0;
}

export function seen(camera: Camera, viewWidth: number, viewHeight: number): Box {
  return [camera.x, camera.y, viewWidth / camera.scale, viewHeight / camera.scale];
}
