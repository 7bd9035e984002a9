/** The secrets of a Compose file, and their uses in services. Pure. */
import { textIn, type Values } from '../../../lib/values.ts';
import type { Path } from '../file/tree.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { booleanOf, listOf, mapOf, withoutAbsent } from './values.ts';

const secretsFolder = '/run/secrets/';
/** Mode of files as Compose mounts them. */
const fileMode = 0o444;

export function usesOf(
  reader: Reader,
  path: Path,
  value: unknown,
  names: ReadonlyMap<string, string>,
): Values | undefined {
  const items = filesIn(reader, path, value, { of: 'secret', folder: secretsFolder, declared: names });
  const files = items?.map(({ target, use, mode, found: secret }) => {
    const id = (key: string): number | undefined => (use[key] === undefined ? undefined : Number(use[key]));
    return [target, withoutAbsent({ secret, mode, uid: id('uid'), gid: id('gid') })] as const;
  });
  return files && { files: Object.fromEntries(files) };
}

interface FileOf<T> {
  readonly at: Path;
  /** Absolute. */
  readonly target: string;
  readonly use: Values;
  readonly mode: unknown;
  readonly found: T;
}

/** Files of a service that are secrets or configs. */
export function filesIn<T>(
  reader: Reader,
  path: Path,
  value: unknown,
  {
    of,
    folder,
    declared,
  }: { readonly of: 'secret' | 'config'; readonly folder: string; readonly declared: ReadonlyMap<string, T> },
): readonly FileOf<T>[] | undefined {
  return reader.take(path, value, listOf, 'a list')?.flatMap((item, index) => {
    const at = [...path, String(index)];
    const use = typeof item === 'string' ? { source: item } : reader.take(at, item, mapOf, 'a name, or a map');
    if (use === undefined) return [];
    reader.others(at, use, keysOf[`${of}Use`]);
    const source = textIn(use['source']) ?? '';
    const given = textIn(use['target']) ?? source;
    const found = declared.get(source);
    if (found === undefined) {
      reader.fault(at, `"${source}" is not a ${of} of this file: declare it under "${of}s"`);
      return [];
    }
    return [{ at, target: given.startsWith('/') ? given : `${folder}${given}`, use, mode: modeOf(use['mode']), found }];
  });
}

/** `"0440"` in quotes is octal too. */
const modeOf = (value: unknown): unknown =>
  typeof value === 'string' && /^0?[0-7]{3}$/.test(value) ? Number.parseInt(value, 8) : (value ?? fileMode);

export interface Secrets {
  readonly declared: Values | undefined;
  /** Names on the server by their keys in the file. */
  readonly names: ReadonlyMap<string, string>;
  /** Keys in the file by their names on the server. */
  readonly keys: ReadonlyMap<string, string>;
}

/** Names are `<project>-<key>`, like those of containers; an external secret keeps its name. */
export function secretsOf(reader: Reader, value: unknown, project: string): Secrets {
  const all = reader.take(['secrets'], value, mapOf, 'a map');
  const names = new Map<string, string>();
  const entries = Object.entries(all ?? {}).flatMap(([key, given]) => {
    const path = ['secrets', key];
    const secret = reader.take(path, given, mapOf, 'a map') ?? {};
    reader.others(path, secret, keysOf.secret);
    // Older files have the name there.
    const named = mapOf(secret['external']);
    const external = named === undefined ? secret['external'] : true;
    const isExternal = reader.take([...path, 'external'], external, booleanOf, 'true or false') ?? false;
    const source = ['file', 'environment'].find((one) => secret[one] !== undefined);
    if (isExternal && source !== undefined) reader.fault(path, `is external, and can't have ${source}`);
    const name = textIn(secret['name']) ?? textIn(named?.['name']) ?? (isExternal ? key : `${project}-${key}`);
    names.set(key, name);
    // An external secret is on the server already; if not, the plan reports it.
    if (isExternal) return [];
    const from = withoutAbsent({ file: secret['file'], env: secret['environment'] });
    return [[name, { value_from: from }] as const];
  });
  const keys = new Map([...names].map(([key, name]) => [name, key]));
  return { declared: all && Object.fromEntries(entries), names, keys };
}
