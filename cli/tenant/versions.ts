/** `versions` and `rollback`: earlier declarations of a container, and the return to one. */
import type { Command } from 'commander';
import { dataOf, writtenOf, type Schemas } from '../client/api.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { versionNumber, waiting, type WaitOptions } from '../terminal/arguments.ts';
import { Refused } from '../terminal/errors.ts';
import { listing, showList } from '../terminal/list.ts';
import { agoText, imageText } from '../terminal/table.ts';
import { goalOf } from './done.ts';
import { findContainer } from './find.ts';
import { storedPolicy } from './uses.ts';
import { watchDone } from './progress.ts';

type Version = Schemas['ContainerVersion'];

const versionsOf = ({ api }: Pick<Context, 'api'>, id: string): Promise<Version[]> =>
  dataOf(api.GET('/api/v2/compute/{id}/versions', { params: { path: { id } } }));

const outcomeText = ({ outcome, reason }: Version): string =>
  `${outcome ?? 'under way'}${reason === null ? '' : `: ${reason}`}`;

async function versions(context: Context, name: string): Promise<void> {
  const { id } = await findContainer(context, name);
  const nowMs = context.terminal.nowMs();
  showList(context, {
    items: await versionsOf(context, id),
    columns: {
      version: ({ version }) => String(version),
      image: ({ spec }) => imageText(spec.image),
      outcome: outcomeText,
      age: ({ at }) => agoText(at, nowMs),
      by: ({ by }) => by?.subject ?? '-',
    },
    nameOf: ({ version }) => String(version),
    empty: '',
  });
}

/**
 * The newest earlier version that ran well.
 * @throws Refused if there is none, or if its host has restored it already
 */
export function versionBefore(name: string, [newest, ...earlier]: readonly Version[]): number {
  const list = `"longshore versions ${name}" shows which there are`;
  if (newest?.outcome === 'rolled_back')
    throw new Refused(`${name}: version ${newest.version} was rolled back already; name a version: ${list}`);
  const before = earlier.find(({ outcome }) => outcome === 'done');
  if (before === undefined) throw new Refused(`${name} has no earlier version that ran well; name a version: ${list}`);
  return before.version;
}

async function rollback(
  context: Context,
  name: string,
  given: number | undefined,
  { detach, stable, timeout }: WaitOptions & { readonly detach?: true },
): Promise<void> {
  const { api, tell, show } = context;
  const container = await findContainer(context, name);
  const { id } = container;
  const version = given ?? versionBefore(container.name, await versionsOf(context, id));
  tell(`${container.name}: back to version ${version}`);
  const { data, generation } = await writtenOf(
    api.POST('/api/v2/compute/{id}/rollback', { params: { path: { id } }, body: { version } }),
  );
  if (detach !== true && data.desired === 'running') {
    const goal = goalOf(await storedPolicy(context, id), stable);
    await watchDone(context, container, { goal, generation, seconds: timeout });
  }
  show({ id, name: container.name, version, generation, spec: data }, id);
}

export function addVersions(program: Command, terminal: Terminal): void {
  listing(program.command('versions <container>').description('List what a container declared, newest first')).action(
    action<[string]>(terminal, versions),
  );
  waiting(
    program
      .command('rollback <container>')
      .description('Return a container to an earlier version, and wait until it is up')
      .argument('[version]', 'Version to return to (default: the last one that ran well)', versionNumber)
      .option('-d, --detach', 'Return without waiting until the container is up'),
  ).action(action<[string, number | undefined, WaitOptions & { readonly detach?: true }]>(terminal, rollback));
}
