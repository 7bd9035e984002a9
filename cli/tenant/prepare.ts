/** Parts of a container that its declaration does not hold: policy, secrets, labels, project. */
import { isDeepStrictEqual } from 'node:util';
import type { Metadata } from '../../schemas/api/fields/container.ts';
import { answerOf, dataOf, doneOf, type Answer, type Schemas } from '../client/api.ts';
import type { Context } from '../context.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { NotFound } from './find.ts';

export type Uses = Schemas['ContainerSecretsPut'];

export interface UseOptions {
  readonly secret?: readonly string[];
  readonly secretFile?: readonly string[];
  /** Variables and files that it shall not have any more. */
  readonly unset?: readonly string[];
}

function usesIn({ secret = [], secretFile = [] }: UseOptions): Required<Uses> {
  const split = (text: string, what: string): [string, string] => {
    const at = text.indexOf('=');
    if (at < 1 || at === text.length - 1)
      throw new WrongUsage(`${what} ${text}: it must be ${what.endsWith('file') ? '/path' : 'NAME'}=secret`);
    return [text.slice(0, at), text.slice(at + 1)];
  };
  return {
    env: Object.fromEntries(secret.map((text) => split(text, '--secret'))),
    files: Object.fromEntries(
      secretFile.map((text) => {
        const [path, name] = split(text, '--secret-file');
        return [path, { secret: name }];
      }),
    ),
  };
}

/**
 * The uses that a container shall have; undefined: the options change none.
 * @throws WrongUsage
 */
export function usesWith(options: UseOptions, stored: Uses): Uses | undefined {
  const { unset = [] } = options;
  const given = usesIn(options);
  // Of a file that there is, the mode and the owner stay.
  const files = Object.entries(given.files).map(([path, use]) => [path, { ...stored.files?.[path], ...use }] as const);
  const without = <T>(uses: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(uses).filter(([name]) => !unset.includes(name)));
  const uses = {
    env: without({ ...stored.env, ...given.env }),
    files: without({ ...stored.files, ...Object.fromEntries(files) }),
  };
  return isDeepStrictEqual(uses, { env: {}, files: {}, ...stored }) ? undefined : uses;
}

export const storedPolicy = ({ api }: Pick<Context, 'api'>, id: string): Promise<Schemas['Policy']> =>
  dataOf(api.GET('/api/v2/compute/{id}/policy', { params: { path: { id } } }));

export const storedUses = ({ api }: Pick<Context, 'api'>, id: string): Promise<Schemas['ContainerSecrets']> =>
  dataOf(api.GET('/api/v2/compute/{id}/secrets', { params: { path: { id } } }));

export const namesUses = ({ secret = [], secretFile = [], unset = [] }: UseOptions): boolean =>
  secret.length + secretFile.length + unset.length > 0;

/**
 * Before anything is changed: a misspelt name would leave half of a change.
 * @throws NotFound
 */
export async function refuseUnknown({ api }: Pick<Context, 'api'>, { env = {}, files = {} }: Uses): Promise<void> {
  const names = [...Object.values(env), ...Object.values(files).map(({ secret }) => secret)];
  const known = new Set((await dataOf(api.GET('/api/v2/compute/secrets'))).map(({ name }) => name));
  const unknown = names.find((name) => !known.has(name));
  if (unknown !== undefined) throw new NotFound('secret', unknown);
}

/** Undefined: it stays as it is. */
export interface Preparation {
  readonly policy?: Schemas['PolicyPut'] | undefined;
  readonly uses?: Uses | undefined;
}

/**
 * Sets labels and project of a container that is declared as the ETag says.
 * @returns its ETag now; that of the argument from a server that does not say it
 */
export async function relabel(
  { api }: Pick<Context, 'api'>,
  id: string,
  { labels, project }: Partial<Metadata>,
  etag: string,
): Promise<string> {
  let current = etag;
  const put = async (asked: Promise<Answer<unknown>>): Promise<void> => {
    current = (await answerOf(asked)).response.headers.get('etag') ?? current;
  };
  const params = () => ({ path: { id }, header: { 'If-Match': current } });
  if (labels !== undefined)
    await put(api.PUT('/api/v2/compute/{id}/labels', { params: params(), body: { ...labels } }));
  if (project !== undefined)
    await put(api.PUT('/api/v2/compute/{id}/project', { params: params(), body: { project } }));
  return current;
}

export async function prepare({ api }: Pick<Context, 'api'>, id: string, { policy, uses }: Preparation): Promise<void> {
  const params = { path: { id } };
  if (policy !== undefined) await doneOf(api.PUT('/api/v2/compute/{id}/policy', { params, body: policy }));
  if (uses !== undefined) await doneOf(api.PUT('/api/v2/compute/{id}/secrets', { params, body: uses }));
}
