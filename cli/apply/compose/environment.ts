/** The variables of a service, from its file and from files of variables. */
import type { Values } from '../../../lib/values.ts';
import type { Path } from '../file/tree.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { booleanOf, mapOf, pairsOf } from './values.ts';

type Lookup = (name: string) => string | undefined;
type Variables = Readonly<Record<string, string>>;

export interface EnvFile {
  readonly path: string;
  /** Values stay as they are written. */
  readonly isRaw: boolean;
  /** Variables to which values of the file refer. */
  readonly valueOf: Lookup;
}

/**
 * The variables of a file, a message about what is wrong with it, or `undefined` if it does not
 * exist.
 */
export type ReadEnvFile = (file: EnvFile) => Variables | string | undefined;

interface Named {
  /** Its path in the Compose file. */
  readonly at: Path;
  readonly path: string;
  readonly isRaw: boolean;
  readonly isRequired: boolean;
}

/** Each file once, the last time that it is named. */
function filesOf(reader: Reader, path: Path, given: unknown): Named[] {
  const items: unknown[] = given === undefined || given === null ? [] : Array.isArray(given) ? given : [given];
  const named = items.flatMap((item, number): Named[] => {
    const at = Array.isArray(given) ? [...path, String(number)] : path;
    const file = typeof item === 'string' ? { path: item } : reader.take(at, item, mapOf, 'a path, or a map');
    if (file === undefined) return [];
    reader.others(at, file, keysOf.envFile);
    const raw = (format: unknown) => (format === 'raw' ? true : undefined);
    const isRaw = reader.take([...at, 'format'], file['format'], raw, 'raw, or absent') ?? false;
    const isRequired = reader.take([...at, 'required'], file['required'], booleanOf, 'true or false') ?? true;
    return [{ at, path: String(file['path']), isRaw, isRequired }];
  });
  return [...new Map(named.map((file) => [file.path, file])).values()];
}

/**
 * Variables of a service. `environment` wins over files, even with an unset variable; a later file
 * wins over earlier ones.
 */
export function environmentOf(
  reader: Reader,
  path: Path,
  service: Values,
  { valueOf, readEnvFile }: { readonly valueOf: Lookup; readonly readEnvFile: ReadEnvFile },
): Values | undefined {
  const files = filesOf(reader, [...path, 'env_file'], service['env_file']);
  const form = 'a map of texts, or a list of NAME=value';
  const pairs = reader.take([...path, 'environment'], service['environment'], pairsOf, form) ?? [];
  const own = new Map(pairs.map(([name, value]) => [name, value === null ? valueOf(name) : value]));
  const all = new Map<string, unknown>(own);
  const known: Lookup = (name) => {
    const value = valueOf(name) ?? own.get(name) ?? all.get(name);
    return value === undefined ? undefined : String(value);
  };
  for (const { at, isRequired, ...file } of files) {
    const found = readEnvFile({ ...file, valueOf: known });
    if (typeof found === 'string') reader.fault(at, found);
    else if (found !== undefined) for (const [name, value] of Object.entries(found)) all.set(name, value);
    else if (isRequired) reader.fault(at, `there is no file ${file.path}`);
  }
  for (const [name, value] of own) all.set(name, value);
  if (service['environment'] === undefined && files.length === 0) return undefined;
  return Object.fromEntries([...all].filter(([, value]) => value !== undefined));
}
