/** Resources of the tenant that a file is about. */
import { limits } from '../../schemas/limits.ts';
import { dataOf, type Schemas } from '../client/api.ts';
import { allOf } from '../client/pages.ts';
import type { Context } from '../context.ts';
import { documentOf, type Declared } from '../tenant/document.ts';
import { overviewOf, type Container } from '../tenant/find.ts';
import { projectOf } from './file/checks.ts';
import type { Wanted } from './file/model.ts';

export interface FoundContainer extends Declared {
  readonly id: string;
  readonly status: Schemas['ContainerStatusView'];
}

export type Peer = Schemas['Peer'];

export interface Found {
  /** Containers with names of the file. */
  readonly containers: ReadonlyMap<string, FoundContainer>;
  /** Containers of the file's projects that it does not declare. */
  readonly strays: readonly Container[];
  /** Versions of secrets, by name. */
  readonly secrets: ReadonlyMap<string, number>;
  /** Logins by registry. */
  readonly registries: ReadonlyMap<string, Schemas['RegistryLogin']>;
  readonly peers: ReadonlyMap<string, Peer>;
}

const isAsked = (...lists: readonly (readonly unknown[])[]): boolean => lists.some((list) => list.length > 0);

/** Asks only for the kinds that the file is about: a token may lack the scope for others. */
export async function findAll(context: Pick<Context, 'api'>, wanted: Wanted): Promise<Found> {
  const { api } = context;
  const { containers, registries, secrets, peers, removed, projects } = wanted;
  const all = isAsked(containers, projects) ? await overviewOf(context) : [];
  const names = new Set(containers.map(({ name }) => name));
  const asked = all.filter(({ container }) => names.has(container.name)).map(({ container }) => container);
  const found = await inParallel(asked, (one) => details(context, one.id));
  const hasSecrets = isAsked(containers, secrets, removed.secrets);
  const foundSecrets = hasSecrets ? await dataOf(api.GET('/api/v2/compute/secrets')) : [];
  const hasLogins = isAsked(registries, removed.registries);
  const foundLogins = hasLogins ? await dataOf(api.GET('/api/v2/compute/registries')) : [];
  const hasPeers = isAsked(peers, removed.peers);
  const foundPeers = hasPeers ? await allOf((query) => api.GET('/api/forage/peers', { params: { query } })) : [];
  return {
    containers: new Map(found.map((one) => [one.document.name, one])),
    strays: all
      .filter(({ container: { env, name, status }, project }) => {
        const isOther = !names.has(name) && status !== 'removing';
        return isOther && projects.includes(projectOf({ env, project }) ?? '');
      })
      .map(({ container }) => container),
    secrets: new Map(foundSecrets.map(({ name, version }) => [name, version])),
    registries: new Map(foundLogins.map((login) => [login.host, login])),
    peers: new Map(foundPeers.map((peer) => [peer.name, peer])),
  };
}

async function details(context: Pick<Context, 'api'>, id: string): Promise<FoundContainer> {
  const params = { path: { id } };
  const status = await dataOf(context.api.GET('/api/v2/compute/{id}/status', { params }));
  return { id, status, ...(await documentOf(context, id)) };
}

/** Works on a bounded number of items at once. */
export async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [at, item] of queue) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: limits.cliParallel }, worker));
  return results;
}
