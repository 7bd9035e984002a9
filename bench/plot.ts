/** Draws a plot with two logarithmic axes as SVG for light and dark pages. */
import type { Plot } from './section.ts';

const [width, height] = [720, 400];
const frame = { left: 76, right: 190, top: 40, bottom: 52 } as const;
const colours = ['#4477aa', '#ee6677', '#228833', '#ccbb44', '#66ccee', '#aa3377'] as const;

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** The powers of ten that enclose the values. */
function decades(values: readonly number[]): number[] {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  return Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step));
}

const scale =
  (ticks: readonly number[], from: number, to: number) =>
  (value: number): number => {
    const [low, high] = [Math.log10(ticks[0] ?? 1), Math.log10(ticks.at(-1) ?? 10)];
    return from + ((Math.log10(value) - low) / (high - low)) * (to - from);
  };

const named = (value: number): string =>
  value >= 1 ? value.toLocaleString('en-US') : String(Number(value.toPrecision(1)));

export function svgOf({ title, xLabel, yLabel, series }: Plot): string {
  const points = series.flatMap((one) => one.points);
  const [xTicks, yTicks] = [decades(points.map(([x]) => x)), decades(points.map(([, y]) => y))];
  const x = scale(xTicks, frame.left, width - frame.right);
  const y = scale(yTicks, height - frame.bottom, frame.top);
  const text = (at: readonly [number, number], anchor: string, words: string, more = ''): string =>
    `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" text-anchor="${anchor}"${more}>${escaped(words)}</text>`;
  const line = (from: readonly [number, number], to: readonly [number, number]): string =>
    `<path class="grid" d="M${from.map((at) => at.toFixed(1)).join(' ')}L${to.map((at) => at.toFixed(1)).join(' ')}"/>`;
  const [bottom, right] = [height - frame.bottom, width - frame.right];
  const middle = (frame.top + bottom) / 2;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    '<style>text{fill:#555}.grid{stroke:#8888;stroke-width:.5;fill:none}@media(prefers-color-scheme:dark){text{fill:#bbb}}</style>',
    text([frame.left, 20], 'start', title, ' font-size="14"'),
    ...xTicks.flatMap((tick) => [
      line([x(tick), frame.top], [x(tick), bottom]),
      text([x(tick), bottom + 18], 'middle', named(tick)),
    ]),
    ...yTicks.flatMap((tick) => [
      line([frame.left, y(tick)], [right, y(tick)]),
      text([frame.left - 8, y(tick) + 4], 'end', named(tick)),
    ]),
    text([(frame.left + right) / 2, height - 12], 'middle', xLabel),
    text([16, middle], 'middle', yLabel, ` transform="rotate(-90 16 ${middle})"`),
    ...series.flatMap((one, at) => {
      const colour = colours[at % colours.length] ?? colours[0];
      const path = one.points.map(([px, py]) => `${x(px).toFixed(1)} ${y(py).toFixed(1)}`);
      return [
        `<path fill="none" stroke="${colour}" stroke-width="2" d="M${path.join('L')}"/>`,
        ...path.map(
          (point) => `<circle cx="${point.split(' ')[0]}" cy="${point.split(' ')[1]}" r="3" fill="${colour}"/>`,
        ),
        `<rect x="${right + 16}" y="${frame.top + at * 20}" width="12" height="4" fill="${colour}"/>`,
        text([right + 34, frame.top + at * 20 + 7], 'start', one.name),
      ];
    }),
    '</svg>',
  ].join('\n')}\n`;
}
