/** `logs`, `events` and `stats`. */
import type { Command } from 'commander';
import { limits } from '../../schemas/limits.ts';
import { oneLine } from '../../schemas/visible.ts';
import { dataOf, type Answer, type Schemas } from '../client/api.ts';
import { follow, type Open } from '../client/follow.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { wholeNumber } from '../terminal/arguments.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { joined, withColours } from '../terminal/output.ts';
import { bytesText, tableOf } from '../terminal/table.ts';
import { memoryText } from './containers.ts';
import { containersOf, findContainer } from './find.ts';

type LogEntry = Schemas['LogEntry'];
type Event = Schemas['Event'];
type Stats = Schemas['ContainerStats'];

interface StreamOptions {
  readonly follow?: true;
  readonly lines: number;
  readonly timestamps?: true;
}

interface StreamRequest {
  readonly query: { readonly limit: number; readonly follow: true };
  readonly header: { readonly 'Last-Event-ID'?: string };
  readonly signal: AbortSignal;
}

/** The newest entries of a list, and with `--follow` those that come. */
async function* entriesOf<Entry>(
  { terminal }: Context,
  { lines: limit, follow: isFollowed }: StreamOptions,
  ask: (query: { readonly limit: number }) => Promise<Answer<{ readonly data: Entry[] } | string>>,
  open: (request: StreamRequest) => ReturnType<Open>,
): AsyncGenerator<Entry, void> {
  if (isFollowed !== true) {
    yield* await dataOf(ask({ limit }));
    return;
  }
  const query = { limit, follow: true } as const;
  yield* follow<Entry>((header, signal) => open({ query, header, signal }), terminal.signal);
}

/** Error output goes to error output, as it was written. */
function writeLine({ isJson, terminal }: Context, { stream, line, ts, ...rest }: LogEntry, hasTime: boolean): void {
  const to = stream === 'stderr' && !isJson ? terminal.stderr : terminal.stdout;
  // Programs colour their lines; everything else that a terminal obeys is shown, as `less -R` does.
  const shown = to.isTTY ? withColours(line) : line;
  if (isJson) to.write(`${JSON.stringify({ ts, stream, line, ...rest })}\n`);
  else to.write(joined([hasTime ? `${ts} ` : '', shown, '\n']));
}

async function logs(context: Context, name: string, options: StreamOptions): Promise<void> {
  const path = { id: (await findContainer(context, name)).id };
  const { api } = context;
  const entries = entriesOf<LogEntry>(
    context,
    options,
    (query) => api.GET('/api/v2/compute/{id}/logs', { params: { path, query } }),
    ({ signal, ...given }) =>
      api.GET('/api/v2/compute/{id}/logs', { params: { path, ...given }, parseAs: 'stream', signal }),
  );
  for await (const entry of entries) writeLine(context, entry, options.timestamps === true);
}

function eventText({ ts, type, name, status, reason, message, host_key, by }: Event): string {
  const why = reason === null ? '' : ` ${reason}${message === null ? '' : `: ${message}`}`;
  return (
    [
      ts,
      name ?? '-',
      type,
      status ?? '',
      host_key === null ? '' : `on ${host_key}`,
      by?.subject ? `by ${by.subject}` : '',
    ]
      .filter((part) => part !== '')
      .map(oneLine)
      .join(' ') + oneLine(why)
  );
}

async function events(context: Context, name: string | undefined, options: StreamOptions): Promise<void> {
  const { api, terminal, isJson } = context;
  const path = name === undefined ? undefined : { id: (await findContainer(context, name)).id };
  const entries =
    path === undefined
      ? entriesOf<Event>(
          context,
          options,
          (query) => api.GET('/api/v2/compute/events', { params: { query } }),
          ({ signal, ...params }) => api.GET('/api/v2/compute/events', { params, parseAs: 'stream', signal }),
        )
      : entriesOf<Event>(
          context,
          options,
          (query) => api.GET('/api/v2/compute/{id}/events', { params: { path, query } }),
          ({ signal, ...given }) =>
            api.GET('/api/v2/compute/{id}/events', { params: { path, ...given }, parseAs: 'stream', signal }),
        );
  for await (const event of entries) terminal.stdout.write(`${isJson ? JSON.stringify(event) : eventText(event)}\n`);
}

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

/** As wide as a sample usually is: the lines to come are not known. */
const sampleWidths = [24, 6, 21, 9, 9];
export const sampleLine = (cells: readonly string[]): string =>
  cells.map((cell, at) => cell.padEnd(sampleWidths[at] ?? 0)).join('  ');

async function stats(context: Context, names: readonly string[], options: { readonly follow?: true }): Promise<void> {
  const { api, terminal, isJson, show } = context;
  const isOfAll = names.length === 0;
  const chosen = isOfAll
    ? (await containersOf(context)).filter(({ status }) => status === 'running')
    : await Promise.all(names.map((name) => findContainer(context, name)));
  const [only, ...others] = chosen;
  if (options.follow === true && only !== undefined && others.length === 0) {
    const samples = follow<Stats>(
      (_header, signal) =>
        api.GET('/api/v2/compute/{id}/stats', {
          params: { path: { id: only.id }, query: { follow: true } },
          parseAs: 'stream',
          signal,
        }),
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
  const rows: (Stats & { readonly name: string })[] = [];
  for (let at = 0; at < chosen.length; at += limits.cliParallel) {
    const some = chosen.slice(at, at + limits.cliParallel).map(async ({ id, name }) => {
      const asked = dataOf(api.GET('/api/v2/compute/{id}/stats', { params: { path: { id } } }));
      // Of all of them, one may have ended since the list.
      const sample = await (isOfAll ? asked.catch(() => undefined) : asked);
      if (sample !== undefined) rows.push({ name, ...sample });
    });
    await Promise.all(some);
  }
  show(
    rows,
    tableOf(
      columns,
      rows.map((row) => cells(row.name, row)),
      'No container runs.',
    ),
  );
}

export function addStreams(program: Command, terminal: Terminal): void {
  const streaming = (command: Command, what: string, most: number, fallback: number): Command =>
    command
      .option('-f, --follow', `Stream new ${what} as they come`)
      .option('-n, --lines <count>', `Number of newest ${what} to show`, wholeNumber(1, most), fallback);
  streaming(
    program.command('logs <container>').description('Show the log lines of a container'),
    'lines',
    limits.logsMax,
    limits.logsDefault,
  )
    .option('-t, --timestamps', 'Show the time of each line')
    .action(action<[string, StreamOptions]>(terminal, logs));
  streaming(
    program.command('events [container]').description('Show the events of one container, or of all'),
    'events',
    limits.eventsMax,
    limits.eventsDefault,
  ).action(action<[string | undefined, StreamOptions]>(terminal, events));
  program
    .command('stats [container...]')
    .description('Show the CPU, memory, network and processes in use')
    .option('-f, --follow', 'Show new numbers every second, of one container')
    .action(action<[string[], { follow?: true }]>(terminal, stats));
}
