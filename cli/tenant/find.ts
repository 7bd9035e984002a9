/** Finds the container or peer that a person means, by its name, its id, or one end of its id. */
import { uuidPattern } from '../../schemas/words.ts';
import type { Context } from '../context.ts';
import { limits } from '../../schemas/limits.ts';
import { dataOf, orNone, type Schemas } from '../client/api.ts';
import type { paths } from '../client/openapi.d.ts';
import { allOf } from '../client/pages.ts';
import { composeFiles, folderWith } from '../compose-files.ts';
import { Refused } from '../terminal/errors.ts';

/** Shortest beginning or end of an id that names a container. */
const cliShortIdChars = 4;

export type Container = Schemas['Container'];
export type Peer = Schemas['Peer'];
type Asking = Pick<Context, 'api' | 'terminal'>;

const wholeId = new RegExp(uuidPattern);

export const containersOf = ({ api }: Pick<Context, 'api'>): Promise<Container[]> =>
  allOf((query) => api.GET('/api/v2/compute', { params: { query } }));

export type Item = Schemas['ContainerItem'];
type Overview = NonNullable<paths['/api/v2/containers']['get']['parameters']['query']>;
export type OverviewQuery = Omit<Overview, 'cursor' | 'limit'>;

/** Containers with labels and the like. */
export const overviewOf = ({ api }: Pick<Context, 'api'>, only: OverviewQuery = {}): Promise<Item[]> =>
  allOf((query) =>
    api.GET('/api/v2/containers', { params: { query: { ...query, ...only, limit: limits.overviewMax } } }),
  );

export const peersOf = ({ api }: Pick<Context, 'api'>): Promise<Peer[]> =>
  allOf((query) => api.GET('/api/forage/peers', { params: { query } }));

/** Thrown if there is no such thing. */
export class NotFound extends Refused {
  constructor(what: 'container' | 'peer' | 'registry' | 'secret' | 'token', name: string) {
    const list = what === 'container' ? 'ps' : `${what} ls`;
    super(`there is no ${what} "${name}": "longshore ${list}" shows which there are`);
  }
}

/** @throws Refused if there are several; undefined if there is none */
export function oneOf<T extends { readonly id: string; readonly name: string }>(
  all: readonly T[],
  name: string,
): T | undefined {
  const named = all.find((one) => one.name === name || one.id === name);
  if (named !== undefined || name.length < cliShortIdChars) return named;
  const meant = all.filter(({ id }) => id.endsWith(name) || id.startsWith(name));
  if (meant.length > 1)
    throw new Refused(
      `several ids begin or end with "${name}": ${meant.map((one) => `${one.id} (${one.name})`).join(', ')}`,
    );
  return meant[0];
}

/** @throws Refused if there is none, or several */
export async function findContainer(context: Asking, name: string): Promise<Container> {
  const found = wholeId.test(name)
    ? await orNone(dataOf(context.api.GET('/api/v2/compute/{id}', { params: { path: { id: name } } })))
    : await named(context, name);
  if (found === undefined) throw new NotFound('container', name);
  return found;
}

/** Finds by the container's name, or by a service of the Compose file in this folder. */
async function named(context: Asking, name: string): Promise<Container | undefined> {
  const project = await projectHere(context);
  const called = project?.containerOf(name);
  if (project === undefined || called === undefined) return oneOf(await containersOf(context), name);
  // The name of a service is no end of an id.
  const all = await overviewOf(context);
  const found = all.find(({ container }) => container.name === name);
  const ofService = all.find(({ container }) => container.name === called);
  if (found !== undefined && ofService !== undefined && found !== ofService)
    throw new Refused(
      `"${name}" is a container, and a service of the Compose file here, ${called}: give ${called}, or the id ${found.container.id}`,
    );
  const meant = ofService ?? found;
  const other = meant && project.otherOf({ env: meant.container.env, project: meant.project });
  if (meant === undefined || other === undefined) return meant?.container;
  const { id, name: taken } = meant.container;
  throw new Refused(
    `"${name}" is a service of the Compose file here, and ${taken} is a container of the project ${other}: if you mean that one, give its id ${id}, or COMPOSE_PROJECT_NAME=${other}`,
  );
}

/** Loaded only if there is a Compose file, because it needs the YAML library. */
async function projectHere({ terminal }: Asking) {
  const folder = process.cwd();
  const isNamed = terminal.env['COMPOSE_FILE'] !== undefined;
  if (!isNamed && folderWith(folder, composeFiles) === undefined) return undefined;
  const { projectIn } = await import('../apply/compose/project.ts');
  return projectIn({ folder, env: terminal.env });
}

/** @throws Refused if there is none, or several */
export async function findPeer(context: Pick<Context, 'api'>, name: string): Promise<Peer> {
  const found = oneOf(await peersOf(context), name);
  if (found === undefined) throw new NotFound('peer', name);
  return found;
}
