/** `start`, `stop`, `restart`, `rm` and `wait`. */
import { Argument, type Command } from 'commander';
import { containerStatuses } from '../../schemas/words.ts';
import { dataOf, writtenOf } from '../client/api.ts';
import { ApiError, InterruptedError } from '../client/errors.ts';
import type { WaitedStatus } from '../client/wait.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { generationNumber, timeout, waiting, type WaitOptions } from '../terminal/arguments.ts';
import { Refused, WrongUsage } from '../terminal/errors.ts';
import { each } from './each.ts';
import { goalOf } from './done.ts';
import { findContainer, NotFound, type Container } from './find.ts';
import { storedPolicy } from './uses.ts';
import { telling, watchDone } from './progress.ts';
import { untilAtRest, untilGone, untilStatus } from './rest.ts';

const statuses = [...containerStatuses, 'removed'] as const;

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
  const stays = `${name} goes on: "longshore wait ${name} ${status}" waits again`;
  const until = async () => untilStatus(context, await findContainer(context, name), [status], seconds);
  const view = await telling(context, stays, until).catch((error: unknown) => {
    const isGone = error instanceof NotFound || (error instanceof ApiError && error.status === 404);
    if (status === 'removed' && isGone) return null;
    throw error;
  });
  if (view === undefined) throw new Refused(`${name} did not become ${status} within ${seconds} s`);
  context.show(view, view === null ? status : statusText({ ...view, status }));
}

type Detachable<T> = T & { readonly detach?: true };

/** Sends all requests, then waits for each container. */
async function askEach<Answer>(
  context: Context,
  names: readonly string[],
  ask: (container: Container) => Promise<Answer>,
  wait: ((container: Container, answer: Answer) => Promise<unknown>) | undefined,
): Promise<void> {
  type Asked = { readonly container: Container; readonly answer: Answer } | { readonly error: unknown };
  const asked = new Map<string, Asked>();
  for (const name of new Set(names)) {
    const askOne = async (): Promise<Asked> => {
      const container = await findContainer(context, name);
      return { container, answer: await ask(container) };
    };
    asked.set(name, await askOne().catch((error: unknown) => ({ error })));
    if (context.terminal.signal.aborted) break;
  }
  await each(context, [...new Set(names)], async (name) => {
    const one = asked.get(name) ?? { error: new InterruptedError() };
    if ('error' in one) throw one.error;
    await wait?.(one.container, one.answer);
    return name;
  });
}

const pathOf = ({ id }: Container) => ({ params: { path: { id } } });

const askStart = ({ api }: Context, container: Container) =>
  writtenOf(api.POST('/api/v2/compute/{id}/start', pathOf(container)));

const askStop = ({ api }: Context, container: Container) =>
  dataOf(api.POST('/api/v2/compute/{id}/stop', pathOf(container)));

async function untilUp(
  context: Context,
  container: Container,
  generation: number | undefined,
  { timeout, stable }: WaitOptions,
): Promise<void> {
  const goal = goalOf(await storedPolicy(context, container.id), stable);
  const undo = [`stop ${container.name}`, 'stops it'] as const;
  await watchDone(context, container, { goal, generation, seconds: timeout, undo });
}

const start = (context: Context, names: readonly string[], { detach, ...options }: Detachable<WaitOptions>) =>
  askEach(
    context,
    names,
    (container) => askStart(context, container),
    detach === true ? undefined : (container, { generation }) => untilUp(context, container, generation, options),
  );

type Ending = Detachable<Pick<WaitOptions, 'timeout'>>;

const stop = (context: Context, names: readonly string[], { detach, timeout }: Ending) =>
  askEach(
    context,
    names,
    (container) => askStop(context, container),
    detach === true ? undefined : (container) => untilAtRest(context, container, timeout),
  );

const remove = (context: Context, names: readonly string[], { detach, timeout }: Ending) =>
  askEach(
    context,
    names,
    (container) => dataOf(context.api.DELETE('/api/v2/compute/{id}', pathOf(container))),
    detach === true ? undefined : (container) => untilGone(context, container, timeout),
  );

/** One after another, so that containers of one service are not all down at once. */
const restart = (context: Context, names: readonly string[], { detach, ...options }: Detachable<WaitOptions>) =>
  each(context, names, async (name) => {
    const container = await findContainer(context, name);
    await askStop(context, container);
    // A start before the end would let the container run on.
    await telling(context, `${container.name} does not start again: "longshore start ${container.name}"`, () =>
      untilAtRest(context, container, options.timeout),
    );
    const { generation } = await askStart(context, container);
    if (detach !== true) await untilUp(context, container, generation, options);
    return name;
  });

const detachable = (command: Command, what: string): Command =>
  command.option('-d, --detach', `Return without waiting until the containers are ${what}`);

export function addContainers(program: Command, terminal: Terminal): void {
  const named = (name: string, description: string): Command => program.command(name).description(description);
  const longest = 'Longest wait for each container';
  waiting(
    detachable(named('start <container...>', 'Start containers, and wait until they are up'), 'up'),
    longest,
  ).action(action<[string[], Detachable<WaitOptions>]>(terminal, start));
  timeout(
    detachable(named('stop <container...>', 'Stop containers, and wait for their end'), 'stopped'),
    longest,
  ).action(action<[string[], Ending]>(terminal, stop));
  waiting(
    detachable(named('restart <container...>', 'Stop containers, start them again, and wait until they are up'), 'up'),
    longest,
  ).action(action<[string[], Detachable<WaitOptions>]>(terminal, restart));
  timeout(
    detachable(named('rm <container...>', 'Stop and remove containers, and wait until they are gone'), 'gone'),
    longest,
  ).action(action<[string[], Ending]>(terminal, remove));
  waiting(
    named('wait <container>', 'Wait until a container is up, its job has ended, or it has a status').addArgument(
      new Argument('[status]', 'Status to wait for').choices(statuses),
    ),
  )
    .option('--generation <number>', 'Generation to wait for, of one change (default: the newest)', generationNumber)
    .action(action<[string, WaitedStatus | undefined, WaitOptions & { readonly generation?: number }]>(terminal, wait));
}
