/** Resources of the tenant that a file is about. */
import type { PolicyView } from '../../schemas/api/policy.ts';
import type { ContainerSecrets } from '../../schemas/api/secret.ts';
import { limits } from '../../schemas/limits.ts';
import { answerOf, dataOf, type Schemas } from '../client/api.ts';
import { allOf } from '../client/pages.ts';
import type { Context } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { overviewOf, type Container } from '../tenant/find.ts';
import { storedPolicy, storedUses } from '../tenant/prepare.ts';
import { projectNamed, projectVariable } from './file/checks.ts';
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

/** The file that a container belongs to; null: none. The last release has left a variable. */
export const projectOf = ({
  env,
  project = null,
}: Pick<Container, 'env'> & { readonly project?: string | null }): string | null =>
  project ?? (env[projectVariable] === undefined ? null : projectNamed(env[projectVariable]));

/** Asks only for the kinds that the file is about: a token may lack the scope for others. */
export async function findAll(context: Pick<Context, 'api'>, wanted: Wanted): Promise<Found> {
  const { api } = context;
  const { containers, registries, secrets, peers, removed, projects } = wanted;
  const all = isAsked(containers, projects) ? await overviewOf(context) : [];
  refuseWithoutProjects(wanted, all);
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
      (one) => !names.has(one.name) && projects.includes(projectOf(one) ?? '') && one.status !== 'removing',
    ),
    secrets: new Map(foundSecrets.map(({ name, version }) => [name, version])),
    registries: new Map(foundLogins.map((login) => [login.host, login])),
    peers: new Map(foundPeers.map((peer) => [peer.name, peer])),
  };
}

/** A gateway of the last release would make containers that no file knows. */
function refuseWithoutProjects({ containers, projects }: Wanted, all: readonly { readonly project?: string | null }[]) {
  const isNamed = projects.length > 0 || containers.some(({ metadata }) => metadata.project !== null);
  if (isNamed && all.some(({ project }) => project === undefined))
    throw new Refused(
      'the server is of an earlier release, and keeps no projects: upgrade its actors and gateways, or apply with the earlier command',
    );
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
