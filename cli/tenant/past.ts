/** `logs` and `events`: past items, and new ones with `--follow`. */
import { Option, type Command } from 'commander';
import { uuidPattern } from '../../schemas/words.ts';
import { compareEvents } from '../../schemas/event-id.ts';
import { limits } from '../../schemas/limits.ts';
import { oneLine } from '../../schemas/visible.ts';
import { dataOf, type Answer, type Schemas } from '../client/api.ts';
import { follow, type Open } from '../client/follow.ts';
import { itemsOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { collect, pastText, pastTime, wholeNumber } from '../terminal/arguments.ts';
import { Refused, WrongUsage } from '../terminal/errors.ts';
import { joined, withColours } from '../terminal/output.ts';
import { findContainer, NotFound, overviewOf, type OverviewQuery } from './find.ts';

type LogEntry = Schemas['LogEntry'];
type Event = Schemas['Event'];

/** Most lines of `--lines` as a number: the command holds them in memory. */
const linesMost = 100_000;
/** Pages of events that are searched for a removed container by its name. */
const removedPages = 20;

interface PastOptions {
  readonly follow?: true;
  readonly lines?: number | 'all';
  /** Another name of `--lines`, as in docker and kubectl. */
  readonly tail?: number | 'all';
  readonly since?: string;
  readonly until?: string;
}

interface LogOptions extends PastOptions {
  readonly timestamps?: true;
  readonly grep?: string;
  readonly label?: readonly string[];
  readonly project?: readonly string[];
}

interface EventOptions extends PastOptions {
  readonly type?: readonly string[];
}

interface Page<Item> {
  readonly data: Item[];
  readonly next_cursor?: string;
}

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string;
  readonly order: 'asc' | 'desc';
  readonly since?: string;
  readonly until?: string;
}

interface StreamRequest {
  readonly query: { readonly limit: number };
  readonly header: { readonly 'Last-Event-ID'?: string };
  readonly signal: AbortSignal;
}

/** Without `follow` the answer is a list; the document has both. */
const listed = <Item>(asked: Promise<Answer<Page<Item> | string>>) => asked as Promise<Answer<Page<Item>>>;

/** A list of the API, as pages and as a stream. */
interface Source<Item> {
  page(query: PageQuery): Promise<Answer<Page<Item>>>;
  newest(limit: number): Promise<Answer<Page<Item>>>;
  open(request: StreamRequest): ReturnType<Open>;
  /** `Last-Event-ID` of a stream that begins behind this item. */
  frameOf(item: Item): string;
  compare(one: Item, other: Item): number;
  /** Applies the filters of the page to the stream, which has none; `undefined` without filters. */
  readonly isWanted: ((item: Item) => boolean) | undefined;
  readonly pageMost: number;
  readonly shown: number;
}

/** The newest items, or all since a time; oldest first. */
async function* past<Item>(
  source: Pick<Source<Item>, 'page' | 'pageMost' | 'shown'>,
  { tail, lines = tail, since, until }: PastOptions,
): AsyncGenerator<Item, void> {
  const range = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
  const pages = (order: 'asc' | 'desc', limit: number): AsyncGenerator<Item, void> =>
    itemsOf((query) => source.page({ ...range, ...query, order, limit }));
  if (lines === 'all' || (lines === undefined && since !== undefined)) {
    yield* pages('asc', source.pageMost);
    return;
  }
  const count = lines ?? source.shown;
  const found: Item[] = [];
  for await (const item of pages('desc', Math.min(count, source.pageMost))) {
    found.push(item);
    if (found.length === count) break;
  }
  yield* found.reverse();
}

/** Past items, followed by new ones with `--follow`. */
async function* entriesOf<Item>(
  { terminal: { signal, stderr } }: Context,
  source: Source<Item>,
  options: PastOptions,
): AsyncGenerator<Item, void> {
  if (options.follow !== true) {
    yield* past(source, options);
    return;
  }
  const stream = (limit: number, after?: string): AsyncGenerator<Item, void> =>
    follow<Item>((header, ended) => source.open({ query: { limit }, header, signal: ended }), signal, {
      after,
      onReset: () => stderr.write('the stream began again: some that came meanwhile may be missing\n'),
    });
  const { isWanted, pageMost, shown } = source;
  const { tail, lines = tail ?? shown, since, until } = options;
  // The stream itself begins with the newest.
  if (lines !== 'all' && lines <= pageMost && since === undefined && until === undefined && isWanted === undefined) {
    yield* stream(lines);
    return;
  }
  if (until !== undefined) throw new WrongUsage('--follow has no end: leave out --until');
  // The stream begins behind the item that is the newest before the past is read.
  const [newest] = await dataOf(source.newest(1));
  let last: Item | undefined;
  for await (const item of past(source, options)) yield (last = item);
  const after = newest === undefined ? undefined : source.frameOf(newest);
  for await (const item of stream(pageMost, after)) {
    if (last !== undefined && source.compare(item, last) <= 0) continue;
    if (isWanted?.(item) !== false) yield item;
  }
}

/** Several lists as one, in order. */
async function* merged<Item>(
  lists: readonly AsyncGenerator<Item, void>[],
  compare: (one: Item, other: Item) => number,
): AsyncGenerator<Item, void> {
  const heads = await Promise.all(lists.map(async (list) => ({ list, next: await list.next() })));
  for (;;) {
    const open = heads.flatMap((head) => (head.next.done === true ? [] : [{ head, item: head.next.value }]));
    const [first] = open.sort((one, other) => compare(one.item, other.item));
    if (first === undefined) return;
    yield first.item;
    first.head.next = await first.head.list.next();
  }
}

interface Named {
  readonly id: string;
  readonly name: string;
}

const wholeId = new RegExp(uuidPattern);

/** A container that exists, or existed. */
async function findPast(context: Context, name: string): Promise<Named> {
  if (wholeId.test(name)) return { id: name, name };
  try {
    return await findContainer(context, name);
  } catch (error) {
    const removed = error instanceof NotFound ? await lastRemoved(context, name) : undefined;
    if (removed === undefined) throw error;
    const { container_id: id, ts } = removed;
    context.terminal.stderr.write(`${oneLine(name)} was removed at ${ts}; its id was ${id}\n`);
    return { id, name };
  }
}

/** The last container of this name that was removed. */
async function lastRemoved({ api }: Context, name: string): Promise<Event | undefined> {
  const query = { type: ['removed' as const], order: 'desc' as const, limit: limits.eventsMax };
  let pages = 0;
  const removed = itemsOf((given) => {
    pages += 1;
    return listed<Event>(api.GET('/api/v2/compute/events', { params: { query: { ...query, ...given } } }));
  });
  for await (const event of removed) {
    if (event.name === name) return event;
    if (pages > removedPages) return undefined;
  }
  return undefined;
}

function logsOf({ api }: Context, { id }: Named, { grep }: LogOptions): Source<LogEntry> {
  const path = { id };
  const contains = grep === undefined ? {} : { contains: grep };
  return {
    page: (query) =>
      listed(api.GET('/api/v2/compute/{id}/logs', { params: { path, query: { ...query, ...contains } } })),
    newest: (limit) => listed(api.GET('/api/v2/compute/{id}/logs', { params: { path, query: { limit } } })),
    open: ({ signal, ...given }) =>
      api.GET('/api/v2/compute/{id}/logs/stream', { params: { path, ...given }, parseAs: 'stream', signal }),
    frameOf: ({ seq }) => String(seq),
    compare: (one, other) => one.seq - other.seq,
    isWanted: grep === undefined ? undefined : ({ line }) => line.includes(grep),
    pageMost: limits.logsMax,
    shown: limits.logsDefault,
  };
}

/** The lines of a container from its first one on, until it is gone. */
export const followedLines = (context: Context, id: string, signal: AbortSignal): AsyncGenerator<LogEntry, void> => {
  const { open } = logsOf(context, { id, name: id }, {});
  const query = { limit: limits.logsMax };
  return follow<LogEntry>((header, ended) => open({ query, header, signal: ended }), signal);
};

/** Error output goes to error output, as it was written. */
export function writeLine(
  { isJson, terminal }: Context,
  { stream, line, ts, ...rest }: LogEntry,
  { before, hasTime }: { readonly before: string; readonly hasTime: boolean },
): void {
  const to = stream === 'stderr' && !isJson ? terminal.stderr : terminal.stdout;
  // Programs colour their lines; other control characters are shown, as `less -R` does.
  const shown = to.isTTY ? withColours(line) : line;
  if (isJson) to.write(`${JSON.stringify({ ts, stream, line, ...rest })}\n`);
  else to.write(joined([before, hasTime ? `${ts} ` : '', shown, '\n']));
}

type Filters = Pick<OverviewQuery, 'label' | 'project'>;

/** The lines of all containers that the filters match, as the server lists them together. */
async function logsOfMatching(context: Context, filters: Filters, options: LogOptions): Promise<void> {
  const { grep, timestamps } = options;
  const asked = { ...filters, ...(grep === undefined ? {} : { contains: grep }) };
  const lines = past<Schemas['ContainerLogEntry']>(
    {
      page: (query) => context.api.GET('/api/v2/compute/logs', { params: { query: { ...query, ...asked } } }),
      pageMost: limits.logsMax,
      shown: limits.logsDefault,
    },
    options,
  );
  let width = 0;
  for await (const entry of lines) {
    width = Math.max(width, entry.name.length);
    writeLine(context, entry, { before: `${entry.name.padEnd(width)} | `, hasTime: timestamps === true });
  }
}

async function matching(context: Context, filters: Filters): Promise<Named[]> {
  const found = await overviewOf(context, filters);
  if (found.length === 0) throw new Refused('no container matches');
  return found.map(({ container: { id, name } }) => ({ id, name }));
}

async function logs(context: Context, names: readonly string[], options: LogOptions): Promise<void> {
  const { label, project, follow } = options;
  const filters: Filters = {
    ...(label === undefined ? {} : { label: [...label] }),
    ...(project === undefined ? {} : { project: [...project] }),
  };
  const hasFilters = Object.keys(filters).length > 0;
  if (hasFilters === names.length > 0) throw new WrongUsage('name containers, or choose them by --label or --project');
  if (hasFilters && follow !== true) return logsOfMatching(context, filters, options);
  const chosen = hasFilters
    ? await matching(context, filters)
    : await Promise.all(names.map((name) => findPast(context, name)));
  const width = Math.max(...chosen.map(({ name }) => name.length));
  const isOne = names.length === 1;
  const of = ({ name, id }: Named) => ({
    before: isOne ? '' : `${name.padEnd(width)} | `,
    more: isOne ? {} : { name, container_id: id },
  });
  const hasTime = options.timestamps === true;
  const listed = chosen.map(async function* (one) {
    const { before, more } = of(one);
    for await (const entry of entriesOf(context, logsOf(context, one, options), options))
      yield { entry: { ...entry, ...more }, before };
  });
  const write = ({ entry, before }: { readonly entry: LogEntry; readonly before: string }): void =>
    writeLine(context, entry, { before, hasTime });
  if (options.follow === true) {
    const writeAll = async (list: (typeof listed)[number]): Promise<void> => {
      for await (const line of list) write(line);
    };
    await Promise.all(listed.map(writeAll));
    return;
  }
  for await (const line of merged(listed, (one, other) => one.entry.seq - other.entry.seq)) write(line);
}

export function eventText({ ts, type, name, status, reason, message, host_key, by }: Event): string {
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

function eventsOf({ api }: Context, one: Named | undefined, { type }: EventOptions): Source<Event> {
  const types = type === undefined ? {} : { type: [...type] as Event['type'][] };
  const path = one === undefined ? undefined : { id: one.id };
  const list = (query: Omit<PageQuery, 'order'> & Partial<PageQuery>) =>
    listed<Event>(
      path === undefined
        ? api.GET('/api/v2/compute/events', { params: { query } })
        : api.GET('/api/v2/compute/{id}/events', { params: { path, query } }),
    );
  return {
    page: (query) => list({ ...query, ...types }),
    newest: (limit) => list({ limit }),
    open: ({ signal, ...given }) =>
      path === undefined
        ? api.GET('/api/v2/compute/events/stream', { params: given, parseAs: 'stream', signal })
        : api.GET('/api/v2/compute/{id}/events/stream', { params: { path, ...given }, parseAs: 'stream', signal }),
    frameOf: ({ id }) => id,
    compare: (one, other) => compareEvents(one.id, other.id),
    isWanted: type === undefined ? undefined : (event) => type.includes(event.type),
    pageMost: limits.eventsMax,
    shown: limits.eventsDefault,
  };
}

async function events(context: Context, name: string | undefined, options: EventOptions): Promise<void> {
  const { terminal, isJson } = context;
  const one = name === undefined ? undefined : await findPast(context, name);
  for await (const event of entriesOf(context, eventsOf(context, one, options), options))
    terminal.stdout.write(`${isJson ? JSON.stringify(event) : eventText(event)}\n`);
}

const someLines = wholeNumber(1, linesMost);
const linesOrAll = (text: string): number | 'all' => (text === 'all' ? text : someLines(text));

export function addPast(program: Command, terminal: Terminal): void {
  const time = pastTime(Date.now);
  const reading = (command: Command, what: string, shown: number): Command =>
    command
      .option('-f, --follow', `Show new ${what} as they come`)
      .option(
        '-n, --lines <count>',
        `Number of newest ${what}, or "all" (default: ${shown}, all with --since)`,
        linesOrAll,
      )
      .addOption(new Option('--tail <count>', `Number of newest ${what}`).argParser(linesOrAll).hideHelp())
      .option('--since <time>', `Only ${what} of this time or later, ${pastText}`, time)
      .option('--until <time>', `Only ${what} of an earlier time`, time);
  reading(
    program.command('logs [container...]').description('Show the log lines of containers, of removed ones too'),
    'lines',
    limits.logsDefault,
  )
    .option(
      '-l, --label <key[=value]>',
      'Label of the containers to show, in place of names, or one of several',
      collect,
    )
    .option('--project <name>', 'Project of the containers to show, or one of several', collect)
    .option('-g, --grep <text>', 'Only lines with this text in them')
    .option('-t, --timestamps', 'Show the time of each line')
    .action(action<[string[], LogOptions]>(terminal, logs));
  reading(
    program.command('events [container]').description('Show the events of one container, or of all'),
    'events',
    limits.eventsDefault,
  )
    .option('--type <type>', 'Only events of this type; may be repeated', collect)
    .action(action<[string | undefined, EventOptions]>(terminal, events));
}
