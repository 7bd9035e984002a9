/** The secrets that a container uses, and its policy. */
import { dataOf, type Schemas } from '../client/api.ts';
import type { Context } from '../context.ts';
import { WrongUsage } from '../terminal/errors.ts';

export type Uses = Schemas['ContainerSecretsPut'];

export interface UseOptions {
  readonly secret?: readonly string[];
  readonly secretFile?: readonly string[];
  /** Variables and files to remove. */
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
 * Applies options to the uses of a container.
 * @throws WrongUsage
 */
export function usesWith(options: UseOptions, stored: Uses): Uses {
  const { unset = [] } = options;
  const given = usesIn(options);
  // An existing file keeps its mode and owner.
  const files = Object.entries(given.files).map(([path, use]) => [path, { ...stored.files?.[path], ...use }] as const);
  const without = <T>(uses: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(uses).filter(([name]) => !unset.includes(name)));
  return {
    env: without({ ...stored.env, ...given.env }),
    files: without({ ...stored.files, ...Object.fromEntries(files) }),
  };
}

export const storedPolicy = ({ api }: Pick<Context, 'api'>, id: string): Promise<Schemas['Policy']> =>
  dataOf(api.GET('/api/v2/compute/{id}/policy', { params: { path: { id } } }));

export const storedUses = ({ api }: Pick<Context, 'api'>, id: string): Promise<Schemas['ContainerSecrets']> =>
  dataOf(api.GET('/api/v2/compute/{id}/secrets', { params: { path: { id } } }));
