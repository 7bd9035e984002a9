/** Names for a completion: the first ones that the server, or the file of the profiles, has. */
import { dataOf, createApi, type Api } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import { itemsOf } from '../client/pages.ts';
import { accessOf, type Terminal } from '../context.ts';
import { profilePath, readProfiles } from '../profiles.ts';
import type { Completion, NamedKind } from './walk.ts';

/** Operators see all hosts, tenants those of their regions. */
async function* hosts(api: Api): AsyncGenerator<string> {
  try {
    for await (const { key } of itemsOf((query) => api.GET('/api/v2/operator/hosts', { params: { query } }))) yield key;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'forbidden') throw error;
    for await (const { key } of itemsOf((query) => api.GET('/api/v2/compute/hosts', { params: { query } }))) yield key;
  }
}

async function* namesIn(items: AsyncIterable<{ readonly name: string }>): AsyncGenerator<string> {
  for await (const { name } of items) yield name;
}

async function* secrets(api: Api): AsyncGenerator<string> {
  for (const { name } of await dataOf(api.GET('/api/v2/compute/secrets'))) yield name;
}

const sources: Readonly<Record<Exclude<NamedKind, 'profile'>, (api: Api) => AsyncIterable<string>>> = {
  container: (api) => namesIn(itemsOf((query) => api.GET('/api/v2/compute', { params: { query } }))),
  secret: secrets,
  host: hosts,
  network: (api) => namesIn(itemsOf((query) => api.GET('/api/v2/operator/networks', { params: { query } }))),
  peer: (api) => namesIn(itemsOf((query) => api.GET('/api/forage/peers', { params: { query } }))),
};

/**
 * At most `limits.cliCompletionItems` names that begin with the incomplete word.
 * @throws Refused without a server or a token, and errors of the client
 */
export async function* namesFor(kind: NamedKind, completion: Completion, terminal: Terminal): AsyncGenerator<string> {
  const { env, signal } = terminal;
  if (kind === 'profile') return yield* Object.keys(readProfiles(profilePath(env)).profiles);
  yield* sources[kind](createApi({ ...accessOf(completion.given, env), signal }));
}
