// Which sizes along a curve are worth a person's seconds.
import type { SizePoint } from "../engine/protocol.ts";

const most = 7;
const longestCall = 0.5; // seconds, predicted

// The one that is looked at, and up to seven others from one end of the curve to the other whose
// calls do not take long.
export function sizesToMeasure(curve: SizePoint[], here: number): number[] {
  const quick = curve.filter(
    ({ size, predicted }) => size > 0 && predicted !== undefined && predicted < longestCall,
  );
  const chosen = new Set<number>();
  for (let i = 0; i < most; ++i) {
    const point = quick[Math.round((i * (quick.length - 1)) / (most - 1))];
    if (point && point.size !== here) chosen.add(point.size);
  }
  return [here, ...chosen];
}
