// Times along a size: what is predicted as a line. Both axes are logarithmic, so a size that
// doubles moves as far anywhere, and so does a time.
import type { SizePoint } from "../engine/protocol.ts";
import { logScale, ticksOf } from "./log_scale.ts";
import { milliseconds } from "./quantities.ts";

const width = 400;
const height = 170;
const frame = { left: 58, right: 390, top: 12, bottom: 146 };

interface Props {
  along: string;
  here: number;
  predicted: number | undefined; // seconds, at `here`
  curve: SizePoint[];
}

export function SizesCurve({ along, here, predicted, curve }: Props) {
  // Nothing is at 0 of a logarithmic axis.
  const points = curve.filter(({ size, predicted: seconds }) => size > 0 && seconds !== undefined);
  const [first, last] = [points[0], points[points.length - 1]];
  if (!first || !last || first === last) return null;
  const times = points.map(({ predicted: seconds }) => seconds as number);
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const x = logScale([first.size, last.size], [frame.left, frame.right]);
  const y = logScale([least, most], [frame.bottom - 8, frame.top]);
  const path = points.map(
    ({ size }, i) => `${i ? "L" : "M"}${x(size).toFixed(1)} ${y(times[i] ?? 0).toFixed(1)}`,
  );
  const isHereShown = predicted !== undefined && here >= first.size && here <= last.size;
  const label =
    `predicted time of a call along ${along}: ${milliseconds(1e3 * (times[0] ?? 0))} ` +
    `at ${first.size}, ${milliseconds(1e3 * (times[times.length - 1] ?? 0))} at ${last.size}`;
  return (
    <figure class="curve">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
        <path class="axis" d={`M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}`} />
        {ticksOf(first.size, last.size).map((size) => (
          <g key={size}>
            <path class="axis" d={`M${x(size)} ${frame.bottom}v4`} />
            <text x={x(size)} y={frame.bottom + 16} text-anchor="middle">
              {size}
            </text>
          </g>
        ))}
        {[...new Set([least, most])].map((seconds) => (
          <g key={seconds}>
            <path class="axis" d={`M${frame.left - 4} ${y(seconds)}h4`} />
            <text x={frame.left - 8} y={y(seconds) + 4} text-anchor="end">
              {milliseconds(1e3 * seconds)}
            </text>
          </g>
        ))}
        <path class="line" d={path.join("")} />
        {isHereShown && <circle class="here" cx={x(here)} cy={y(predicted)} r="4.5" />}
      </svg>
      <figcaption class="soft">
        <span class="sign">—</span> predicted time of a call along <code>{along}</code>
        {isHereShown && (
          <>
            , <span class="sign">●</span> here
          </>
        )}
      </figcaption>
    </figure>
  );
}
