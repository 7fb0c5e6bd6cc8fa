// Times along a size: a line of what is predicted, points of what was measured.
import type { SizePoint } from "../engine/protocol.ts";
import type { SizesMeasured } from "../run/measure_sizes.ts";
import { decadesOf, logScale, ticksOf } from "./log_scale.ts";
import { milliseconds } from "./quantities.ts";

const width = 400;
const height = 190;
const frame = { left: 58, right: 390, top: 12, bottom: 166 };

interface Props {
  along: string;
  here: number;
  predicted: number | undefined; // seconds, at `here`
  curve: SizePoint[];
  measured: SizesMeasured | null;
}

interface Point {
  size: number;
  time: number; // milliseconds
}

function pathOf(points: Point[], x: (size: number) => number, y: (time: number) => number) {
  return points
    .map(({ size, time }, i) => `${i ? "L" : "M"}${x(size).toFixed(1)} ${y(time).toFixed(1)}`)
    .join("");
}

// A square that stands on its corner.
const diamond = (x: number, y: number) => `M${x} ${y - 5}l5 5l-5 5l-5 -5z`;

export function SizesCurve({ along, here, predicted, curve, measured }: Props) {
  // A logarithmic axis has no 0.
  const line: Point[] = [];
  for (const { size, predicted: seconds } of curve)
    if (size > 0 && seconds !== undefined) line.push({ size, time: 1e3 * seconds });
  const [first, last] = [line[0], line[line.length - 1]];
  if (!first || !last || first === last) return null;
  const points = (measured?.points ?? []).map(({ size, time }) => ({ size, time: time.median }));
  const alone: Point | null =
    measured?.fixed && points[0] ? { size: points[0].size, time: measured.fixed.median } : null;
  const times = [...line, ...points, ...(alone ? [alone] : [])].map(({ time }) => time);
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const x = logScale([first.size, last.size], [frame.left, frame.right]);
  const y = logScale([least, most], [frame.bottom - 8, frame.top]);
  const isHereShown = predicted !== undefined && here >= first.size && here <= last.size;
  const label =
    `predicted time of a call along ${along}: ${milliseconds(first.time)} at ${first.size}, ` +
    `${milliseconds(last.time)} at ${last.size}` +
    (points.length > 0 ? `; measured at ${points.map(({ size }) => size).join(", ")}` : "");
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
        {decadesOf(least, most).map((time) => (
          <g key={time}>
            <path class="axis" d={`M${frame.left - 4} ${y(time)}h4`} />
            <text x={frame.left - 8} y={y(time) + 4} text-anchor="end">
              {milliseconds(time)}
            </text>
          </g>
        ))}
        {isHereShown && (
          <path class="axis now" d={`M${x(here)} ${frame.top}V${frame.bottom}`} />
        )}
        <path class="line" d={pathOf(line, x, y)} />
        {isHereShown && <circle class="here" cx={x(here)} cy={y(1e3 * predicted)} r="4.5" />}
        {points.map(({ size, time }) => (
          <circle key={size} class="measured" cx={x(size)} cy={y(time)} r="4">
            <title>
              {milliseconds(time)} measured at {size}
            </title>
          </circle>
        ))}
        {alone && <path class="alone" d={diamond(x(alone.size), y(alone.time))} />}
      </svg>
      <figcaption class="legend">
        <span>
          <i class="predicted">—</i> predicted, along <code>{along}</code>
        </span>
        {isHereShown && (
          <span>
            <i class="predicted">●</i> here
          </span>
        )}
        {points.length > 0 && (
          <span>
            <i class="measured">○</i> measured
          </span>
        )}
        {alone && (
          <span>
            <i class="alone">◆</i> compiled for {alone.size} alone
          </span>
        )}
      </figcaption>
    </figure>
  );
}
