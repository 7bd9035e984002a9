/** Resources of the tenant that a file is about. */
import type { PolicyView } from '../../schemas/api/policy.ts';
import type { ContainerSecrets } from '../../schemas/api/secret.ts';
import { limits } from '../../schemas/limits.ts';
import { answerOf, dataOf, type Schemas } from '../client/api.ts';
import { allOf } from '../client/pages.ts';
import type { Context } from '../context.ts';
import { containersOf, type Container } from '../tenant/find.ts';
import { storedPolicy, storedUses } from '../tenant/prepare.ts';
import { labelVariable } from './file/checks.ts';
import type { Wanted } from './file/model.ts';

export interface FoundContainer {
  readonly container: Container;
  readonly etag: string;
  readonly status: Schemas['ContainerStatusView'];
  readonly policy: PolicyView;
  readonly uses: ContainerSecrets;
}

export type Peer = Schemas['Peer'];

export interface Found {
  /** Of the names in the file. */
  readonly containers: ReadonlyMap<string, FoundContainer>;
  /** Those that bear a label of the file, and are not in it. */
  readonly strays: readonly Container[];
  /** Versions by name. */
  readonly secrets: ReadonlyMap<string, number>;
  /** By registry. */
  readonly registries: ReadonlyMap<string, Schemas['RegistryLogin']>;
  readonly peers: ReadonlyMap<string, Peer>;
}

const isAsked = (...lists: readonly (readonly unknown[])[]): boolean => lists.some((list) => list.length > 0);

/** Asks only for the kinds that the file is about: a token may lack the scope for others. */
export async function findAll(context: Pick<Context, 'api'>, wanted: Wanted): Promise<Found> {
  const { api } = context;
  const { containers, registries, secrets, peers, removed, projects } = wanted;
  const all = isAsked(containers, projects) ? await containersOf(context) : [];
  const names = new Set(containers.map(({ name }) => name));
  const asked = all.filter(({ name }) => names.has(name));
  const found = await inParallel(asked, (one) => details(context, one.id));
  const hasSecrets = isAsked(containers, secrets, removed.secrets);
  const foundSecrets = hasSecrets ? await dataOf(api.GET('/api/v2/compute/secrets')) : [];
  const hasLogins = isAsked(registries, removed.registries);
  const foundLogins = hasLogins ? await dataOf(api.GET('/api/v2/compute/registries')) : [];
  const hasPeers = isAsked(peers, removed.peers);
  const foundPeers = hasPeers ? await allOf((query) => api.GET('/api/forage/peers', { params: { query } })) : [];
  return {
    containers: new Map(found.map((one) => [one.container.name, one])),
    strays: all.filter(
      ({ name, env, status }) =>
        !names.has(name) && projects.includes(env[labelVariable] ?? '') && status !== 'removing',
    ),
    secrets: new Map(foundSecrets.map(({ name, version }) => [name, version])),
    registries: new Map(foundLogins.map((login) => [login.host, login])),
    peers: new Map(foundPeers.map((peer) => [peer.name, peer])),
  };
}

async function details({ api }: Pick<Context, 'api'>, id: string): Promise<FoundContainer> {
  const params = { path: { id } };
  const { body, response } = await answerOf(api.GET('/api/v2/compute/{id}', { params }));
  return {
    container: body.data,
    etag: response.headers.get('etag') ?? '*',
    status: await dataOf(api.GET('/api/v2/compute/{id}/status', { params })),
    policy: await storedPolicy({ api }, id),
    uses: await storedUses({ api }, id),
  };
}

/** A bounded number at once. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [at, item] of queue) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: limits.cliParallel }, worker));
  return results;
}
