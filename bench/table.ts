/** Prints a table of results to a terminal, or formats it as Markdown. */
import { say } from '../dev/steps.ts';
import type { Table } from './section.ts';

const widthsOf = ({ columns, rows }: Table): number[] =>
  columns.map((column, at) => Math.max(column.length, ...rows.map((row) => row[at]?.length ?? 0)));

/** Aligns the first column left, and the others, which are figures, right. */
const line = (cells: readonly string[], widths: readonly number[], gap: string): string =>
  cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(gap);

export function show(table: Table): void {
  const widths = widthsOf(table);
  say(`\n${table.title}`);
  for (const row of [table.columns, ...table.rows]) say(`  ${line(row, widths, '  ')}`);
  for (const remark of table.remarks) say(`  · ${remark}`);
}

/** The words of a paragraph in lines of at most 100 columns, as the house writes Markdown. */
export function folded(text: string, indent = ''): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > proseColumns) {
      lines.push(line);
      line = indent + word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}

const proseColumns = 100;

export function markdownOf(table: Table): string {
  const widths = widthsOf(table);
  const row = (cells: readonly string[]): string => `| ${line(cells, widths, ' | ')} |`;
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [
    `**${table.title}**`,
    '',
    row(table.columns),
    row(rule),
    ...table.rows.map(row),
    '',
    ...table.remarks.map((remark) => folded(`- ${remark}`, '  ')),
  ].join('\n');
}
