/** `ps`, `inspect`, `start`, `stop`, `rm`, `wait`, `quota` and `usage`. */
import { Argument, type Command } from 'commander';
import { oneLine } from '../../schemas/visible.ts';
import { containerStatuses } from '../../schemas/words.ts';
import { dataOf, orNone, writtenOf } from '../client/api.ts';
import { ApiError, InterruptedError } from '../client/errors.ts';
import { allOf } from '../client/pages.ts';
import { waitFor, type WaitedStatus } from '../client/wait.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { collect, generationNumber, pastText, pastTime, waiting, type WaitOptions } from '../terminal/arguments.ts';
import { Refused, WrongUsage } from '../terminal/errors.ts';
import { paintOf } from '../terminal/colours.ts';
import { agoText, bytesText, imageText, tableOf } from '../terminal/table.ts';
import { each } from './each.ts';
import { cannotCome, goalOf } from './done.ts';
import { findContainer, NotFound, overviewOf, type Container } from './find.ts';
import { storedPolicy, storedUses } from './uses.ts';
import { endText, statusOf, watchDone } from './progress.ts';

/** `wait`: how often it looks whether the status can still come. */
const cliWaitLookMs = 5000;

const statuses = [...containerStatuses, 'removed'] as const;

async function ps(context: Context, { label }: { readonly label?: readonly string[] }): Promise<void> {
  const all = await overviewOf(context, label);
  const labelsOf = ({ labels = {} }: (typeof all)[number]): string =>
    Object.entries(labels)
      .map(([key, value]) => oneLine(value === '' ? key : `${key}=${value}`))
      .join(', ');
  // Who has no labels needs no column for them.
  const hasLabels = all.some((one) => labelsOf(one) !== '');
  const rows = all.map((one) => [
    one.id,
    one.name,
    imageText(one),
    one.status,
    one.host_key ?? '-',
    agoText(one.inserted_at, context.terminal.nowMs()),
    ...(hasLabels ? [labelsOf(one)] : []),
  ]);
  const columns = ['id', 'name', 'image', 'status', 'host', 'age', ...(hasLabels ? ['labels'] : [])];
  context.show(all, tableOf(columns, rows, 'There are no containers.', paintOf(context)));
}

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
    .action(action<[{ readonly label?: readonly string[] }]>(terminal, ps));
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
    .option(
      '--generation <number>',
      'Generation to wait for, as "run" and "update" show it (default: the newest)',
      generationNumber,
    )
    .action(action<[string, WaitedStatus | undefined, WaitOptions & { readonly generation?: number }]>(terminal, wait));
  named('quota', 'Show quota usage').action(action(terminal, quota));
  named('usage', 'Show the resources that each container used')
    .option('--from <time>', `Start of the period, ${pastText} (default: this month)`, time)
    .option('--to <time>', 'End of the period (default: now)', time)
    .action(action<[{ from?: string; to?: string }]>(terminal, usage));
}

export const memoryText = (used: number, limit: number | null): string =>
  limit === null ? bytesText(used) : `${bytesText(used)} / ${bytesText(limit)}`;
