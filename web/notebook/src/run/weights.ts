// The values of weights and inputs, one tensor at a time: from the model's file, where they stay
// until they are wanted, or made by the engine from a seed.
import { engine } from "../engine/engine.ts";
import type { OpenModel } from "../engine/handle.ts";
import type { AnswerOf, Ask, Dims, WeightInfo, WeightPlace } from "../engine/protocol.ts";
import { joined, readRange } from "../engine/unpack.ts";

const pieceElements = 1 << 22; // at once from the engine; a multiple of its block

const elementsOf = (shape: (number | string)[]) =>
  shape.reduce<number>((product, size) => product * Number(size), 1);

// Elements in row-major order, from wherever their strides say they lie.
export function gathered(
  bytes: Uint8Array,
  firstByte: number,
  shape: number[],
  strides: number[],
  width: number,
): Uint8Array {
  const count = shape.reduce((product, size) => product * size, 1);
  const out = new Uint8Array(count * width);
  const at = shape.map(() => 0);
  for (let i = 0; i < count; ++i) {
    const offset = at.reduce((sum, index, k) => sum + index * (strides[k] ?? 0), 0);
    const from = firstByte + offset * width;
    out.set(bytes.subarray(from, from + width), i * width);
    for (let k = shape.length - 1; k >= 0; --k) {
      if ((at[k] = (at[k] ?? 0) + 1) < (shape[k] ?? 0)) break;
      at[k] = 0;
    }
  }
  return out;
}

async function placesOf(model: OpenModel, file: Blob): Promise<Map<string, WeightPlace>> {
  let ask: Ask<"weight_places"> = { model: await model.handle.id() };
  let answer: AnswerOf<"weight_places"> = await engine.request("weight_places", ask);
  while (answer.need) {
    const ranges = answer.need;
    const bytes = joined(await Promise.all(ranges.map((range) => readRange(file, range))));
    ask = { ...ask, ranges };
    answer = await engine.request("weight_places", ask, bytes);
  }
  return new Map((answer.places ?? []).map((place) => [place.name, place]));
}

export class Tensors {
  private constructor(
    private readonly model: OpenModel,
    readonly weights: Map<string, WeightInfo>,
    private readonly file: Blob | null,
    private readonly places: Map<string, WeightPlace>,
    private readonly seed: `random:${number}`,
  ) {}

  static async of(model: OpenModel, seed: number): Promise<Tensors> {
    const id = await model.handle.id();
    const { weights } = await engine.request("weights", { model: id });
    const known = new Map(weights.map((weight) => [weight.name, weight]));
    const file = model.info.has_weights && weights.length > 0 ? await model.source.read() : null;
    const places = file ? await placesOf(model, file) : new Map<string, WeightPlace>();
    return new Tensors(model, known, file, places, `random:${seed}`);
  }

  get seedText(): `random:${number}` {
    return this.seed;
  }

  get numInputs(): number {
    return this.model.info.inputs.length;
  }

  get areSeeded(): boolean {
    return this.file === null;
  }

  async weight(name: string): Promise<Uint8Array> {
    const info = this.weights.get(name);
    if (!info) throw new Error(`the program wants a weight '${name}' that the model lacks`);
    const place = this.places.get(name);
    if (!this.file || !place) return this.made("make_weight", { name }, info);
    const shape = info.shape.map(Number);
    const width = info.num_bytes / Math.max(1, elementsOf(shape));
    if (place.inflated === undefined && place.is_dense) {
      const begin = place.begin + place.first_byte;
      return readRange(this.file, { begin, size: info.num_bytes });
    }
    const all = await readRange(this.file, place);
    if (place.is_dense) return all.slice(place.first_byte, place.first_byte + info.num_bytes);
    return gathered(all, place.first_byte, shape, place.strides, width);
  }

  // At sizes that are not the model's own, its shape is the engine's to say.
  async input(index: number, dims?: Dims): Promise<Uint8Array> {
    const what = { input: index, ...(dims && { dims }) };
    const shape = dims
      ? (await this.piece("make_input", what, 0, 0)).json.shape
      : this.model.info.inputs[index]?.sizes;
    if (!shape) throw new Error(`input ${index} has no known size`);
    return this.made("make_input", what, { shape });
  }

  private async piece(
    name: "make_weight" | "make_input",
    what: { name: string } | { input: number; dims?: Dims },
    first: number,
    count: number,
  ) {
    const model = await this.model.handle.id();
    const ask = { model, ...what, seed: this.seed, first, count } as Ask<typeof name>;
    return engine.requestBytes(name, ask);
  }

  private async made(
    name: "make_weight" | "make_input",
    what: { name: string } | { input: number; dims?: Dims },
    { shape }: { shape: (number | string)[] },
  ): Promise<Uint8Array> {
    const all = elementsOf(shape);
    const pieces: Uint8Array[] = [];
    for (let first = 0; first < all || first === 0; first += pieceElements) {
      const count = Math.min(pieceElements, all - first);
      pieces.push((await this.piece(name, what, first, count)).bytes);
    }
    return pieces.length === 1 ? (pieces[0] as Uint8Array) : joined(pieces);
  }
}
