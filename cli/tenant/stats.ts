/** `stats`. */
import type { Command } from 'commander';
import { limits } from '../../schemas/limits.ts';
import { dataOf, type Schemas } from '../client/api.ts';
import { follow } from '../client/follow.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { listing, showList } from '../terminal/list.ts';
import { bytesText } from '../terminal/quantities.ts';
import { containersOf, findContainer } from './find.ts';

type Stats = Schemas['ContainerStats'];

const memoryText = (used: number, limit: number | null): string =>
  limit === null ? bytesText(used) : `${bytesText(used)} / ${bytesText(limit)}`;

const columns = ['name', 'cpu', 'memory', 'received', 'sent', 'pids'];
const cells = (
  name: string,
  { cpu_millis, mem_bytes, mem_limit, net_rx_bytes, net_tx_bytes, pids }: Stats,
): string[] => [
  name,
  `${(cpu_millis / 1000).toFixed(3)}`,
  memoryText(mem_bytes, mem_limit),
  net_rx_bytes === null ? '-' : bytesText(net_rx_bytes),
  net_tx_bytes === null ? '-' : bytesText(net_tx_bytes),
  pids === null ? '-' : String(pids),
];

/** Usual widths of a sample: those of later lines are not known. */
const sampleWidths = [24, 6, 21, 9, 9];
export const sampleLine = (cells: readonly string[]): string =>
  cells.map((cell, at) => cell.padEnd(sampleWidths[at] ?? 0)).join('  ');

type Row = Stats & { readonly id: string; readonly name: string };

async function stats(context: Context, names: readonly string[], options: { readonly follow?: true }): Promise<void> {
  const { api, terminal, isJson } = context;
  const isOfAll = names.length === 0;
  const chosen = isOfAll
    ? (await containersOf(context)).filter(({ status }) => status === 'running')
    : await Promise.all(names.map((name) => findContainer(context, name)));
  const [only, ...others] = chosen;
  if (options.follow === true && only !== undefined && others.length === 0) {
    const samples = follow<Stats>(
      (_header, signal) =>
        api.GET('/api/v2/compute/{id}/stats/stream', { params: { path: { id: only.id } }, parseAs: 'stream', signal }),
      terminal.signal,
    );
    if (!isJson)
      terminal.stdout.write(`${sampleLine(['TIME', ...columns.slice(1).map((name) => name.toUpperCase())])}\n`);
    for await (const sample of samples) {
      terminal.stdout.write(`${isJson ? JSON.stringify(sample) : sampleLine(cells(sample.at, sample))}\n`);
    }
    return;
  }
  if (options.follow === true) throw new WrongUsage('--follow shows one container: name it');
  const rows: Row[] = [];
  for (let at = 0; at < chosen.length; at += limits.cliParallel) {
    const some = chosen.slice(at, at + limits.cliParallel).map(async ({ id, name }) => {
      const asked = dataOf(api.GET('/api/v2/compute/{id}/stats', { params: { path: { id } } }));
      // A container of the list may have ended since.
      const sample = await (isOfAll ? asked.catch(() => undefined) : asked);
      if (sample !== undefined) rows.push({ id, name, ...sample });
    });
    await Promise.all(some);
  }
  showList(context, {
    items: rows,
    columns: Object.fromEntries(columns.map((title, at) => [title, (row: Row) => cells(row.name, row)[at] ?? ''])),
    nameOf: ({ name }) => name,
    idOf: ({ id }) => id,
    empty: 'No container runs.',
  });
}

export function addStats(program: Command, terminal: Terminal): void {
  listing(program.command('stats [container...]').description('Show the CPU, memory, network and processes in use'))
    .option('-f, --follow', 'Show new numbers every second, of one container')
    .action(action<[string[], { follow?: true }]>(terminal, stats));
}
