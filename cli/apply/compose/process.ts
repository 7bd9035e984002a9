/** Maps a Compose service to the part `process` of a container. Pure. */
import type { Values } from '../../../lib/values.ts';
import { ulimitsMax } from '../../../schemas/api/fields/process-part.ts';
import { tmpfsIn } from '../../tenant/process.ts';
import type { Path } from '../file/tree.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { booleanOf, isZero, listOf, mapOf, memoryText, textsOf, withoutAbsent } from './values.ts';
import { wordsIn } from './words.ts';

/** An empty text, as from an empty variable, counts as absent. */
const textIn = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;

/** @param memory limit of the container, which bounds its file systems in memory */
export function processOf(reader: Reader, path: Path, service: Values, memory: string): Values | undefined {
  const text = (key: string): string | undefined => {
    const value = service[key];
    return reader.take([...path, key], value === '' ? undefined : value, textIn, 'a text');
  };
  const flag = (key: string): boolean | undefined => {
    const value = service[key];
    return reader.take([...path, key], value === '' ? undefined : value, booleanOf, 'true or false');
  };
  const shm = reader.take([...path, 'shm_size'], service['shm_size'], memoryText, 'a size, like 64m');
  const process = withoutAbsent({
    entrypoint: commandOf(reader, [...path, 'entrypoint'], service['entrypoint']),
    command: commandOf(reader, [...path, 'command'], service['command']),
    user: text('user'),
    working_dir: text('working_dir'),
    tmpfs: joinedMaps(
      volumesOf(reader, [...path, 'volumes'], service['volumes'], memory),
      tmpfsOf(reader, [...path, 'tmpfs'], service['tmpfs'], memory),
    ),
    shm_size: isZero(shm) ? undefined : shm,
    init: flag('init'),
    read_only: flag('read_only'),
    ulimits: ulimitsOf(reader, [...path, 'ulimits'], service['ulimits']),
  });
  return Object.keys(process).length === 0 ? undefined : process;
}

/** Null means that of the image; an empty text or list means none. */
function commandOf(reader: Reader, path: Path, value: unknown): readonly string[] | undefined {
  const form = 'a text, or a list of texts';
  if (typeof value !== 'string') return reader.take(path, value, textsOf, form);
  const read = wordsIn(value);
  if (read === undefined) reader.fault(path, 'has quotes or brackets that do not match: write it as a list');
  else if (read.rest !== undefined)
    reader.warn(
      path,
      `ends before "${read.rest}", as in Compose, which runs no shell: write ["sh", "-c", "…"] for all of it`,
    );
  return read?.words;
}

/** A file system without a size may take all memory of the container, as in Compose. */
function tmpfsOf(reader: Reader, path: Path, value: unknown, memory: string): Values | undefined {
  const given = typeof value === 'string' ? [value] : value;
  const items = reader.take(path, given === '' ? undefined : given, textsOf, 'a text, or a list of texts');
  if (items === undefined) return undefined;
  return Object.fromEntries(
    items.map((item, at) => {
      const { path: folder, size, unknown } = tmpfsIn(item);
      for (const option of unknown) {
        const [key = ''] = option.split('=');
        reader.lacks([...path, ...(listOf(value) ? [String(at)] : []), key], option);
      }
      return [folder, size ?? memory];
    }),
  );
}

const joinedMaps = (one: Values | undefined, other: Values | undefined): Values | undefined =>
  one === undefined && other === undefined ? undefined : { ...one, ...other };

/** Volumes of the type `tmpfs`; there are no others. */
function volumesOf(reader: Reader, path: Path, value: unknown, memory: string): Values | undefined {
  const isTmpfs = (one: unknown): boolean => mapOf(one)?.['type'] === 'tmpfs';
  const others = listOf(value)?.filter((one) => !isTmpfs(one)) ?? value;
  reader.lacks(path, others);
  const entries = (listOf(value) ?? []).flatMap((one, at) => {
    const volume = mapOf(one);
    if (volume === undefined || !isTmpfs(one)) return [];
    const here = [...path, String(at)];
    reader.others(here, volume, keysOf.tmpfsVolume);
    const options = reader.take([...here, 'tmpfs'], volume['tmpfs'], mapOf, 'a map') ?? {};
    reader.others([...here, 'tmpfs'], options, keysOf.tmpfsOptions);
    const target = reader.take([...here, 'target'], volume['target'] ?? {}, textIn, 'a path');
    const size = reader.take([...here, 'tmpfs', 'size'], options['size'], memoryText, 'a size, like 64m');
    return target === undefined ? [] : [[target, size === undefined || isZero(size) ? memory : size] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** A number, maybe in quotes; -1 means no limit. */
const limitIn = (value: unknown): number | undefined =>
  /^(?:-1|\d{1,16})$/.test(String(value)) ? Number(value) : undefined;

function ulimitsOf(reader: Reader, path: Path, value: unknown): Values | undefined {
  const given = reader.take(path, value, mapOf, 'a map of limits');
  if (given === undefined) return undefined;
  const limits = Object.entries(given).map(([name, one]) => [name, ulimitOf(reader, [...path, name], name, one)]);
  return withoutAbsent(Object.fromEntries(limits) as Values);
}

/** `1024`, or `1024:4096`; `undefined` after a fault, and for a limit that holds anyway. */
function ulimitOf(reader: Reader, path: Path, name: string, value: unknown): string | undefined {
  const map = mapOf(value);
  // The platform keeps it at zero.
  if (name === 'core' && String(map === undefined ? value : map['hard']) === '0') return undefined;
  const most = ulimitsMax[name];
  if (most === undefined) {
    reader.lacks(path, map ?? String(value));
    return undefined;
  }
  const read = (at: Path, one: unknown): number | undefined => {
    const number = reader.take(at, one ?? 'absent', limitIn, 'a whole number, or -1 for no limit');
    return reader.atMost(at, number === -1 ? Number.POSITIVE_INFINITY : number, most, '');
  };
  if (map === undefined) return read(path, value)?.toString();
  reader.others(path, map, keysOf.ulimit);
  const [soft, hard] = ['soft', 'hard'].map((key) => read([...path, key], map[key]));
  return soft === undefined || hard === undefined ? undefined : `${soft}:${hard}`;
}
