/** `ps`, `inspect`, `start`, `stop`, `rm`, `wait`, `quota` and `usage`. */
import { Argument, Option, type Command } from 'commander';
import { oneLine } from '../../schemas/visible.ts';
import { containerStatuses } from '../../schemas/words.ts';
import { dataOf, orNone, writtenOf } from '../client/api.ts';
import { ApiError, InterruptedError } from '../client/errors.ts';
import { followFrames, valueOf, type Open } from '../client/follow.ts';
import { allOf } from '../client/pages.ts';
import { waitFor, type WaitedStatus } from '../client/wait.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { collect, generationNumber, pastText, pastTime, waiting, type WaitOptions } from '../terminal/arguments.ts';
import { Refused, WrongUsage } from '../terminal/errors.ts';
import { paintOf } from '../terminal/colours.ts';
import { agoText, bytesText, imageText, tableOf } from '../terminal/table.ts';
import { each } from './each.ts';
import { cannotCome, goalOf } from './done.ts';
import { findContainer, NotFound, overviewOf, type Container, type Item, type KnownItem } from './find.ts';
import { storedPolicy, storedUses } from './uses.ts';
import { endText, lineOf, statusOf, watchDone } from './progress.ts';

/** `wait`: how often it looks whether the status can still come. */
const cliWaitLookMs = 5000;

const statuses = [...containerStatuses, 'removed'] as const;

interface PsOptions {
  readonly label?: readonly string[];
  readonly status?: readonly (typeof containerStatuses)[number][];
  readonly project?: readonly string[];
  readonly watch?: true;
}

const labelsText = ({ labels = {} }: KnownItem): string =>
  Object.entries(labels)
    .map(([key, value]) => oneLine(value === '' ? key : `${key}=${value}`))
    .join(', ');

async function ps(context: Context, { watch, label, status, project }: PsOptions): Promise<void> {
  const filters = Object.entries({ label, status, project }).filter(([, values]) => values !== undefined);
  if (watch === true) {
    if (filters.length > 0) throw new WrongUsage('--watch: give it without a filter, because it shows all containers');
    return watchAll(context);
  }
  const all = await overviewOf(context, Object.fromEntries(filters));
  // Who has no labels needs no column for them.
  const hasLabels = all.some((one) => labelsText(one) !== '');
  const rows = all.map((one) => [
    one.container.id,
    one.container.name,
    imageText(one.container),
    one.container.status,
    one.container.host_key ?? '-',
    agoText(one.container.inserted_at, context.terminal.nowMs()),
    ...(hasLabels ? [labelsText(one)] : []),
  ]);
  const columns = ['id', 'name', 'image', 'status', 'host', 'age', ...(hasLabels ? ['labels'] : [])];
  const values = all.map(({ container, ...beside }) => ({ ...container, ...beside }));
  context.show(values, tableOf(columns, rows, 'There are no containers.', paintOf(context)));
}

/** A line for each container, and one for each change of what a line says, until Ctrl-C. */
async function watchAll({ api, terminal, isJson }: Context): Promise<void> {
  const told = new Map<string, string>();
  const write = (line: string): void => void terminal.stdout.write(`${line}\n`);
  const open: Open = (header, signal) =>
    api.GET('/api/v2/containers/watch', { params: { header }, parseAs: 'stream', signal });
  for await (const frame of followFrames(open, terminal.signal)) {
    const { event } = frame;
    if (event !== 'item' && event !== 'removed') continue;
    // The server is trusted to send what its document says.
    const value = valueOf(frame) as Item | { readonly id: string };
    if (isJson) {
      write(JSON.stringify({ [event]: value }));
      continue;
    }
    const id = 'container' in value ? value.container.id : value.id;
    const line = 'container' in value ? watchLine(value) : 'removed';
    if (told.get(id) !== line) write(`${id}  ${line}`);
    if (event === 'removed') told.delete(id);
    else told.set(id, line);
  }
}

const watchLine = ({ container, status }: Item): string =>
  [container.name, status === undefined ? container.status : lineOf(status), `on ${container.host_key ?? '-'}`]
    .map(oneLine)
    .join('  ');

async function inspect(context: Context, name: string): Promise<void> {
  const { id } = await findContainer(context, name);
  const params = { path: { id } };
  const container = await dataOf(context.api.GET('/api/v2/compute/{id}', { params }));
  const status = await dataOf(context.api.GET('/api/v2/compute/{id}/status', { params }));
  const policy = await dataOf(context.api.GET('/api/v2/compute/{id}/policy', { params }));
  const secrets = await storedUses(context, id);
  // A server of the last release has none.
  const document = await orNone(dataOf(context.api.GET('/api/v2/containers/{id}/spec', { params })));
  const value = { container, status, policy, secrets, process: document?.process ?? {} };
  context.show(value, JSON.stringify(value, null, 2));
}

async function wait(
  context: Context,
  name: string,
  status: WaitedStatus | undefined,
  { timeout, stable, generation }: WaitOptions & { readonly generation?: number },
): Promise<void> {
  if (status !== undefined && generation !== undefined)
    throw new WrongUsage('--generation: give it without a status, which is one of the container as it is now');
  if (status !== undefined) return waitUntil(context, name, status, timeout);
  const container = await findContainer(context, name);
  const goal = goalOf(await storedPolicy(context, container.id), stable);
  const view = await watchDone(context, container, { goal, generation, seconds: timeout });
  context.show(view, statusText(view));
}

const statusText = ({ status, exit_code }: { readonly status: string; readonly exit_code: number | null }): string =>
  exit_code === null ? status : `${status}, exit code ${exit_code}`;

/** Ends with 0 when the container has the status, and as soon as it can't come any more. */
async function waitUntil(context: Context, name: string, status: WaitedStatus, seconds: number): Promise<void> {
  const view = await untilStatus(context, name, status, seconds).catch((error: unknown) => {
    const isGone = error instanceof NotFound || (error instanceof ApiError && error.status === 404);
    if (status === 'removed' && isGone) return null;
    throw error;
  });
  if (view === undefined) throw new Refused(`${name} did not become ${status} within ${seconds} s`);
  context.show(view, view === null ? status : statusText({ ...view, status }));
}

async function untilStatus(context: Context, name: string, status: WaitedStatus, seconds: number) {
  const container = await findContainer(context, name);
  const endMs = performance.now() + seconds * 1000;
  for (;;) {
    const view = await statusOf(context, container.id, endMs);
    if (view.status === status) return view;
    if (cannotCome(view, status))
      throw new Refused(`${await endText(context, container, view)}\nIt can't become ${status} by itself.`);
    const leftMs = endMs - performance.now();
    if (leftMs <= 0) return undefined;
    try {
      const found = await waitFor(context.api, container.id, status, Math.min(leftMs, cliWaitLookMs));
      if (found !== undefined) return found;
    } catch (error) {
      const isRefused = error instanceof ApiError && error.code === 'conflict';
      // A server may say first that it can't come; the next look says why.
      if (!isRefused || !cannotCome(await statusOf(context, container.id), status)) throw error;
    }
  }
}

/** All are asked to start; then each is waited for. */
async function start(
  context: Context,
  names: readonly string[],
  { detach, timeout, stable }: WaitOptions & { readonly detach?: true },
): Promise<void> {
  interface Asked {
    readonly container: Container;
    readonly generation: number | undefined;
  }
  const asked = new Map<string, Asked | { readonly error: unknown }>();
  for (const name of new Set(names)) {
    const ask = async (): Promise<Asked> => {
      const container = await findContainer(context, name);
      const params = { path: { id: container.id } };
      const { generation } = await writtenOf(context.api.POST('/api/v2/compute/{id}/start', { params }));
      return { container, generation };
    };
    const made = await ask().catch((error: unknown) => ({ error }));
    asked.set(name, made);
    if (context.terminal.signal.aborted) break;
  }
  await each(context, names, async (name) => {
    const made = asked.get(name) ?? { error: new InterruptedError() };
    if ('error' in made) throw made.error;
    if (detach === true) return name;
    const { container, generation } = made;
    const goal = goalOf(await storedPolicy(context, container.id), stable);
    await watchDone(context, container, { goal, generation, seconds: timeout });
    return name;
  });
}

export const amountText = (name: string, amount: number): string =>
  name.endsWith('_bytes') ? bytesText(amount) : String(amount);

async function quota(context: Context): Promise<void> {
  const { usage, caps } = await dataOf(context.api.GET('/api/v2/compute/quota'));
  const rows = Object.entries(caps).map(([name, cap]) => [
    name,
    amountText(name, (usage as Readonly<Record<string, number>>)[name] ?? 0),
    cap === null ? 'no cap' : amountText(name, cap),
  ]);
  context.show({ usage, caps }, tableOf(['', 'used', 'cap'], rows, ''));
}

async function usage(context: Context, { from, to }: { readonly from?: string; readonly to?: string }): Promise<void> {
  const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const first = await dataOf(context.api.GET('/api/v2/compute/usage', { params: { query: { ...range, limit: 1 } } }));
  // Whole hours, so that all pages are about the same ones.
  const hours = { from: first.from, to: first.to };
  const containers = await allOf(async (query) => {
    const page = await context.api.GET('/api/v2/compute/usage', { params: { query: { ...hours, ...query } } });
    const { data, ...rest } = page;
    return data === undefined ? { ...rest } : { ...rest, data: { ...data, data: data.data.containers } };
  });
  const words = (of: { container_seconds: number; cpu_seconds: number; mem_byte_seconds: string }): string[] => [
    String(Math.round(of.container_seconds)),
    of.cpu_seconds.toFixed(1),
    (Number(of.mem_byte_seconds) / 1024 ** 3 / 3600).toFixed(2),
  ];
  const rows = containers.map((one) => [one.name ?? one.id, ...words(one)]);
  const table = tableOf(['name', 'seconds', 'cpu seconds', 'GiB hours'], [...rows, ['all', ...words(first.total)]], '');
  context.show({ ...first, containers }, `From ${first.from} to ${first.to}\n${table}`);
}

const change =
  (verb: 'stop' | 'rm') =>
  (context: Context, names: readonly string[]): Promise<void> =>
    each(context, names, async (name) => {
      const { id } = await findContainer(context, name);
      const params = { path: { id } };
      const { api } = context;
      if (verb === 'stop') await dataOf(api.POST('/api/v2/compute/{id}/stop', { params }));
      else await dataOf(api.DELETE('/api/v2/compute/{id}', { params }));
      return name;
    });

export function addContainers(program: Command, terminal: Terminal): void {
  const time = pastTime(() => terminal.nowMs());
  const named = (name: string, description: string): Command => program.command(name).description(description);
  named('ps', 'List containers')
    .option('-l, --label <key[=value]>', 'Label that each listed container has, or one of several', collect)
    .addOption(
      new Option('--status <status>', 'Status that each has, or one of several')
        .choices(containerStatuses)
        .argParser(collect),
    )
    .option('--project <name>', 'Project that each is of, or one of several', collect)
    .option('-w, --watch', 'Show all, and then each change, until Ctrl-C')
    .action(action<[PsOptions]>(terminal, ps));
  named('inspect <container>', 'Show a container, its runs, process, policy and secrets, as JSON').action(
    action<[string]>(terminal, inspect),
  );
  waiting(
    named('start <container...>', 'Start containers, and wait until they are up').option(
      '-d, --detach',
      'Return without waiting until the containers are up',
    ),
    'Longest wait for each container',
  ).action(action<[string[], WaitOptions & { detach?: true }]>(terminal, start));
  named('stop <container...>', 'Stop containers').action(action<[string[]]>(terminal, change('stop')));
  named('rm <container...>', 'Stop and remove containers').action(action<[string[]]>(terminal, change('rm')));
  waiting(
    named('wait <container>', 'Wait until a container is up, its job has ended, or it has a status').addArgument(
      new Argument('[status]', 'Status to wait for').choices(statuses),
    ),
  )
    .option('--generation <number>', 'Generation to wait for, of one change (default: the newest)', generationNumber)
    .action(action<[string, WaitedStatus | undefined, WaitOptions & { readonly generation?: number }]>(terminal, wait));
  named('quota', 'Show quota usage').action(action(terminal, quota));
  named('usage', 'Show the resources that each container used')
    .option('--from <time>', `Start of the period, ${pastText} (default: this month)`, time)
    .option('--to <time>', 'End of the period (default: now)', time)
    .action(action<[{ from?: string; to?: string }]>(terminal, usage));
}

export const memoryText = (used: number, limit: number | null): string =>
  limit === null ? bytesText(used) : `${bytesText(used)} / ${bytesText(limit)}`;
