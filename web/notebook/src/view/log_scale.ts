// Logarithmic axes: a value that doubles moves as far anywhere.

const log = (value: number) => Math.log(Math.max(value, 1e-12));

// Of values between two, both above 0, to places between two others.
export function logScale(
  [least, most]: [number, number],
  [from, to]: [number, number],
): (value: number) => number {
  const span = log(most) - log(least);
  if (span === 0) return () => (from + to) / 2;
  return (value) => from + ((to - from) * (log(value) - log(least))) / span;
}

// Both ends, and the powers of ten between them that are not too near.
export function decadesOf(least: number, most: number): number[] {
  const ticks = new Set([least]);
  for (let power = Math.ceil(Math.log10(least)); 10 ** power < most; ++power)
    if (10 ** power > 1.8 * least && 10 ** power < most / 1.8) ticks.add(10 ** power);
  return [...ticks, ...(most > least ? [most] : [])];
}

const mostTicks = 5;

// Powers of two within two sizes, as few as can be read.
export function ticksOf(first: number, last: number): number[] {
  const all: number[] = [];
  for (let size = 1; size <= last; size *= 2) if (size >= first) all.push(size);
  const step = Math.ceil(all.length / mostTicks);
  return all.filter((_, i) => i % step === 0);
}
