/** The secrets of a Compose file, and what its services make of them. Pure. */
import { textIn, type Values } from '../../../lib/values.ts';
import type { Path } from '../file/tree.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { booleanOf, listOf, mapOf, withoutAbsent } from './values.ts';

const secretsFolder = '/run/secrets/';
/** As Compose mounts them. */
const secretMode = 0o444;

export function usesOf(
  reader: Reader,
  path: Path,
  value: unknown,
  names: ReadonlyMap<string, string>,
): Values | undefined {
  const items = reader.take(path, value, listOf, 'a list');
  if (items === undefined) return undefined;
  const files = items.flatMap((item, at) => {
    const here = [...path, String(at)];
    const use = typeof item === 'string' ? { source: item } : reader.take(here, item, mapOf, 'a name, or a map');
    if (use === undefined) return [];
    reader.others(here, use, keysOf.secretUse);
    const source = textIn(use['source']) ?? '';
    const target = textIn(use['target']) ?? source;
    const id = (key: string): number | undefined => (use[key] === undefined ? undefined : Number(use[key]));
    const secret = names.get(source);
    if (secret === undefined) {
      reader.fault(here, `"${source}" is not a secret of this file: declare it under "secrets"`);
      return [];
    }
    const file = { secret, mode: modeOf(use['mode']), uid: id('uid'), gid: id('gid') };
    return [[target.startsWith('/') ? target : `${secretsFolder}${target}`, withoutAbsent(file)] as const];
  });
  return { files: Object.fromEntries(files) };
}

/** `"0440"` in quotes is octal too. */
const modeOf = (value: unknown): unknown =>
  typeof value === 'string' && /^0?[0-7]{3}$/.test(value) ? Number.parseInt(value, 8) : (value ?? secretMode);

export interface Secrets {
  readonly declared: Values | undefined;
  /** By the key in the file. */
  readonly names: ReadonlyMap<string, string>;
  /** By the name on the server. */
  readonly keys: ReadonlyMap<string, string>;
}

/** `<project>-<key>`, as containers are called; an external one has the name that it has. */
export function secretsOf(reader: Reader, value: unknown, project: string): Secrets {
  const all = reader.take(['secrets'], value, mapOf, 'a map');
  const names = new Map<string, string>();
  const entries = Object.entries(all ?? {}).flatMap(([key, given]) => {
    const path = ['secrets', key];
    const secret = reader.take(path, given, mapOf, 'a map') ?? {};
    reader.others(path, secret, keysOf.secret);
    // Older files name it there.
    const named = mapOf(secret['external']);
    const external = named === undefined ? secret['external'] : true;
    const isExternal = reader.take([...path, 'external'], external, booleanOf, 'true or false') ?? false;
    const source = ['file', 'environment'].find((one) => secret[one] !== undefined);
    if (isExternal && source !== undefined) reader.fault(path, `is external, and can't have ${source}`);
    const name = textIn(secret['name']) ?? textIn(named?.['name']) ?? (isExternal ? key : `${project}-${key}`);
    names.set(key, name);
    // It is on the server already, or the plan says that it is not.
    if (isExternal) return [];
    const from = withoutAbsent({ file: secret['file'], env: secret['environment'] });
    return [[name, { value_from: from }] as const];
  });
  const keys = new Map([...names].map(([key, name]) => [name, key]));
  return { declared: all && Object.fromEntries(entries), names, keys };
}
