/**
 * Writes results into docs/performance.md, between the marks of their section, with the machine and
 * the command.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '../dev/paths.ts';
import { svgOf } from './plot.ts';
import type { Results } from './section.ts';
import { folded, markdownOf } from './table.ts';

const path = join(repositoryRoot, 'docs', 'performance.md');

function circumstances(): string {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  }).trim();
  const machine = [
    `${availableParallelism()} cores (${cpus()[0]?.model.trim()})`,
    `${(totalmem() / 1024 ** 3).toFixed(0)} GiB`,
    `Linux ${release()}`,
    `Node ${process.versions.node}`,
  ].join(', ');
  const day = new Date().toISOString().slice(0, 10);
  return folded(`\`npm run bench -- ${process.argv.slice(2).join(' ')}\`, ${day}, ${machine}, on top of ${commit}.`);
}

/** @throws if the page has no marks for the section */
export function writeResults(section: string, { tables, plots = [] }: Results): void {
  const [from, to] = [`<!-- bench ${section} -->`, `<!-- /bench ${section} -->`];
  const page = readFileSync(path, 'utf8');
  const [start, end] = [page.indexOf(from), page.indexOf(to)];
  if (start < 0 || end < start) throw new Error(`docs/performance.md has no marks for the section ${section}`);
  const pictures = plots.map(({ file, title }) => `![${title}](${file})`);
  const body = [circumstances(), ...tables.map(markdownOf), ...pictures].join('\n\n');
  writeFileSync(path, `${page.slice(0, start + from.length)}\n\n${body}\n\n${page.slice(end)}`);
  for (const plot of plots) writeFileSync(join(repositoryRoot, 'docs', plot.file), svgOf(plot));
}
