// A canvas that shows a scene: pans, zooms, chooses and folds by pointer, wheel and keyboard. It
// paints only when something changed, at most once a frame.
import { fitted, isInView, opening, showing, zoomed, type Camera } from "./camera.ts";
import { paint, paletteOf, type Palette } from "./paint.ts";
import { clusterAt, neighbour, nodeAt, type Scene } from "./scene.ts";

export interface CanvasEvents {
  choose(node: number | null): void; // of scene.nodes
  fold(key: string): void;
}

export class GraphCanvas {
  private scene: Scene | null = null;
  private camera: Camera = { x: 0, y: 0, scale: 1 };
  private chosen: number | null = null;
  private query = "";
  private palette: Palette;
  private width = 1;
  private height = 1;
  private frame = 0;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private travelled = 0; // pixels since the pointer went down
  private readonly stop = new AbortController();
  private readonly observer: ResizeObserver;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly events: CanvasEvents,
  ) {
    this.palette = paletteOf(canvas);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
    const on = { signal: this.stop.signal };
    canvas.addEventListener("wheel", (event) => this.wheel(event), { ...on, passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event), on);
    canvas.addEventListener("pointermove", (event) => this.moved(event), on);
    canvas.addEventListener("pointerup", (event) => this.up(event), on);
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId), on);
    canvas.addEventListener("dblclick", (event) => this.double(event), on);
    canvas.addEventListener("keydown", (event) => this.key(event), on);
    matchMedia("(prefers-color-scheme: dark)").addEventListener(
      "change",
      () => this.recolour(),
      on,
    );
  }

  dispose(): void {
    this.stop.abort();
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  // Keeps the camera where one was looking while there is something to see, unless it is the first
  // scene or `reset`. `whole`: all of the scene, however small.
  show(scene: Scene, { reset = false, whole = false } = {}): void {
    const isFirst = !this.scene;
    this.scene = scene;
    const size = [scene.width, scene.height, this.width, this.height] as const;
    if (whole) this.camera = fitted(...size);
    else if (isFirst || reset) this.camera = opening(...size);
    else if (!isInView(this.camera, ...size)) this.camera = fitted(...size);
    this.paintSoon();
  }

  choose(node: number | null): void {
    this.chosen = node;
    const box = node === null ? undefined : this.scene?.nodes[node]?.box;
    if (box) this.camera = showing(this.camera, box, this.width, this.height);
    this.paintSoon();
  }

  // Comes near enough to read a node.
  approach(node: number): void {
    const box = this.scene?.nodes[node]?.box;
    if (!box) return;
    const scale = Math.max(this.camera.scale, 0.75);
    const x = box[0] + box[2] / 2 - this.width / scale / 2;
    const y = box[1] + box[3] / 2 - this.height / scale / 2;
    this.camera = { x, y, scale };
    this.paintSoon();
  }

  search(query: string): void {
    this.query = query;
    this.paintSoon();
  }

  fit(): void {
    if (!this.scene) return;
    this.camera = fitted(this.scene.width, this.scene.height, this.width, this.height);
    this.paintSoon();
  }

  zoom(factor: number): void {
    this.zoomAt(factor, this.width / 2, this.height / 2);
  }

  private zoomAt(factor: number, x: number, y: number): void {
    if (!this.scene) return;
    const whole = fitted(this.scene.width, this.scene.height, this.width, this.height).scale;
    this.camera = zoomed(this.camera, factor, x, y, whole);
    this.paintSoon();
  }

  recolour(): void {
    this.palette = paletteOf(this.canvas);
    this.paintSoon();
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    const wasHidden = this.width <= 1;
    this.width = Math.max(1, clientWidth);
    this.height = Math.max(1, clientHeight);
    this.canvas.width = Math.round(this.width * devicePixelRatio);
    this.canvas.height = Math.round(this.height * devicePixelRatio);
    if (wasHidden && this.scene) this.show(this.scene, { reset: true });
    this.paintNow();
  }

  private paintSoon(): void {
    this.frame ||= requestAnimationFrame(() => this.paintNow());
  }

  private paintNow(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const g = this.canvas.getContext("2d");
    if (!g || !this.scene) return;
    const { width, height, chosen, query } = this;
    const view = { width, height, pixels: devicePixelRatio, chosen, query };
    paint(g, this.scene, this.camera, view, this.palette);
  }

  private point(event: MouseEvent): [x: number, y: number] {
    const { left, top } = this.canvas.getBoundingClientRect();
    const { x, y, scale } = this.camera;
    return [x + (event.clientX - left) / scale, y + (event.clientY - top) / scale];
  }

  // With Ctrl (or a pinch) it zooms; without, the page scrolls as everywhere else unless the canvas
  // has the focus.
  private wheel(event: WheelEvent): void {
    const isPinch = event.ctrlKey || event.metaKey;
    if (!isPinch && document.activeElement !== this.canvas) return;
    event.preventDefault();
    const { left, top } = this.canvas.getBoundingClientRect();
    const factor = Math.exp(-event.deltaY * (isPinch ? 0.01 : 0.002));
    this.zoomAt(factor, event.clientX - left, event.clientY - top);
  }

  private down(event: PointerEvent): void {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.travelled = 0;
  }

  private moved(event: PointerEvent): void {
    const last = this.pointers.get(event.pointerId);
    if (!last) return;
    const now = { x: event.clientX, y: event.clientY };
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    this.pointers.set(event.pointerId, now);
    this.travelled += Math.hypot(now.x - last.x, now.y - last.y);
    const [other] = others.map(([, point]) => point);
    if (other) {
      const { left, top } = this.canvas.getBoundingClientRect();
      const was = Math.hypot(last.x - other.x, last.y - other.y);
      const is = Math.hypot(now.x - other.x, now.y - other.y);
      this.zoomAt(is / Math.max(was, 1), other.x - left, other.y - top);
    } else {
      this.camera.x -= (now.x - last.x) / this.camera.scale;
      this.camera.y -= (now.y - last.y) / this.camera.scale;
    }
    this.paintSoon();
  }

  private up(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    if (this.travelled > 4 || !this.scene) return;
    const [x, y] = this.point(event);
    const node = nodeAt(this.scene, x, y);
    const cluster = node === null ? clusterAt(this.scene, x, y) : null;
    if (cluster) return this.events.fold(cluster.key);
    this.events.choose(node);
  }

  private double(event: MouseEvent): void {
    const { left, top } = this.canvas.getBoundingClientRect();
    this.zoomAt(1.6, event.clientX - left, event.clientY - top);
  }

  private key(event: KeyboardEvent): void {
    if (!this.scene || event.ctrlKey || event.metaKey || event.altKey) return;
    const directions: Record<string, [number, number]> = {
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
    };
    const direction = directions[event.key];
    if (direction) {
      const next = this.chosen === null ? 0 : neighbour(this.scene, this.chosen, ...direction);
      this.events.choose(this.scene.nodes.length > 0 ? next : null);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "f" || event.key === "0") this.fit();
    else if (event.key === "Escape" && this.chosen !== null) this.events.choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
