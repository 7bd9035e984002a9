/** The configs of a Compose file, which are files of the containers that use them. Pure. */
import { textIn, type Values } from '../../../lib/values.ts';
import type { Path } from '../file/tree.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { filesIn } from './secrets.ts';
import { booleanOf, mapOf } from './values.ts';

/** The text of a file, or the reason why it can't be read. */
export type ReadText = (path: string) => { readonly text: string } | { readonly fault: string };

interface Surroundings {
  /** A variable of the shell, or of `.env`. */
  readonly valueOf: (name: string) => string | undefined;
  readonly readText: ReadText;
}

/**
 * Contents of the configs, by their keys. One with a fault is empty, so that the fault is reported
 * once.
 */
export function configsOf(reader: Reader, value: unknown, surroundings: Surroundings): ReadonlyMap<string, string> {
  const all = reader.take(['configs'], value, mapOf, 'a map') ?? {};
  return new Map(
    Object.entries(all).map(([key, given]) => {
      const path = ['configs', key];
      const config = reader.take(path, given, mapOf, 'a map') ?? {};
      reader.others(path, config, keysOf.config);
      return [key, contentOf(reader, path, config, surroundings) ?? ''] as const;
    }),
  );
}

function contentOf(
  reader: Reader,
  path: Path,
  { content, environment, file, external }: Values,
  { valueOf, readText }: Surroundings,
): string | undefined {
  const fault = (message: string, ...below: readonly string[]): undefined => {
    reader.fault([...path, ...below], message);
  };
  if (mapOf(external) !== undefined || booleanOf(external) === true)
    return fault('Longshore keeps no configs by themselves: give its file, or its content', 'external');
  if (content !== undefined) return textIn(content) ?? fault('must be a text', 'content');
  if (environment !== undefined) {
    const name = textIn(environment) ?? '';
    return valueOf(name) ?? fault(`the variable "${name}" is not set`, 'environment');
  }
  if (file === undefined) return fault('has no content: give file, environment or content');
  const read = readText(textIn(file) ?? '');
  return 'text' in read ? read.text : fault(read.fault, 'file');
}

/** The part `files` of a container's document. */
export function filesOf(
  reader: Reader,
  path: Path,
  value: unknown,
  contents: ReadonlyMap<string, string>,
): Values | undefined {
  const items = filesIn(reader, path, value, { of: 'config', folder: '/', declared: contents });
  const files = items?.map(({ at, target, use, mode, found: content }) => {
    // Files belong to root, which is also the default without these keys.
    for (const key of ['uid', 'gid']) if (Number(use[key] ?? 0) !== 0) reader.lacks([...at, key], use[key]);
    return [target, { content, mode }] as const;
  });
  return files && Object.fromEntries(files);
}
