/** Tables for people, and times and sizes as they read them. Pure. */
import { oneLine, visible } from '../../schemas/visible.ts';
import { plain, type Paint } from './colours.ts';
import { joined, type Text } from './output.ts';

const paintedColumns = ['status', 'state'];

/** A column is cut to no less than this. */
const columnCharsLeast = 8;

interface Look {
  readonly paint?: Paint;
  /** Columns of the terminal; `undefined` to cut no cell. */
  readonly width?: number | undefined;
}

/** A line for each row; columns padded, statuses painted, cells cut. Without rows, `empty`. */
export function tableOf(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
  { paint = plain, width = Number.POSITIVE_INFINITY }: Look = {},
): Text {
  if (rows.length === 0) return empty;
  const lines = [columns.map((name) => name.toUpperCase()), ...rows.map((row) => row.map(oneLine))];
  const whole = columns.map((_, at) => Math.max(...lines.map((line) => widthOf(line[at] ?? ''))));
  const widths = within(width - 2 * (columns.length - 1), whole);
  const lineOf = (cells: readonly string[]): Text => {
    const last = cells.findLastIndex((cell) => cell !== '');
    const shown = cells.slice(0, last + 1).map((cell, at) => {
      const most = widths[at] ?? 0;
      const cut = cutTo(most, cell);
      const padded = at === last ? cut : `${cut}${' '.repeat(most - widthOf(cut))}`;
      return paintedColumns.includes(columns[at] ?? '') ? paint(padded) : padded;
    });
    return joined(shown, '  ');
  };
  return joined(lines.map(lineOf), '\n');
}

/** The widest columns become narrower until all fit, but none narrower than the least. */
function within(width: number, widths: readonly number[]): number[] {
  const fitted = [...widths];
  for (let over = sum(fitted) - width; over > 0;) {
    const widest = Math.max(...fitted);
    if (widest <= columnCharsLeast) break;
    const at = fitted.lastIndexOf(widest);
    const next = Math.max(columnCharsLeast, ...fitted.filter((one) => one < widest));
    const cut = Math.min(over, Math.max(1, widest - next));
    fitted[at] = widest - cut;
    over -= cut;
  }
  return fitted;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Cuts only what a terminal shows. */
const cutTo = (width: number, cell: string): string =>
  widthOf(cell) <= width ? cell : `${visible(cell).slice(0, width - 1)}…`;

/** Width at a terminal. */
const widthOf = (cell: string): number => visible(cell).length;

const steps = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const;

/** Age as text, such as `5m`; `damaged` for a record that can't be read. */
export function agoText(time: string | null, nowMs: number): string {
  if (time === null) return 'damaged';
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(time)) / 1000));
  const [unit, size] = steps.find(([, one]) => seconds >= one) ?? ['s', 1];
  return `${Math.floor(seconds / size)}${unit}`;
}

/** Names behind an image: `docker.io/library/nginx:1.27`. */
export function imageText(of: {
  readonly registry: string;
  readonly repository: string | null;
  readonly tag: string | null;
  readonly digest: string | null;
}): string {
  const { registry, repository, tag, digest } = of;
  if (repository === null) return '-';
  return `${registry}/${repository}${tag === null ? '' : `:${tag}`}${digest === null ? '' : `@${digest}`}`;
}
