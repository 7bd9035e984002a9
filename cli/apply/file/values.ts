/** Values of secrets and passwords of logins, from the shell, a file or the file itself. */
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, relative, resolve } from 'node:path';
import { messageOf } from '../../../lib/error-message.ts';
import { limits } from '../../../schemas/limits.ts';
import { withoutLastBreak } from '../../terminal/input.ts';
import type { Remarks, ValueSource, Wanted, WantedSecret } from './model.ts';

export interface Values {
  readonly registries: Map<string, Buffer>;
  readonly secrets: Map<string, Buffer>;
}

type Lookup = (name: string) => string | undefined;

/**
 * Adds the values of a file to `values`. Remarks say what is wrong with them, without the values.
 * @param folder of the file
 */
export function resolveValues(
  wanted: Wanted,
  folder: string,
  variable: Lookup,
  values: Values,
  { faults, warnings }: Remarks,
): void {
  const kinds = [
    { items: wanted.secrets, to: values.secrets, maxBytes: limits.secretBytes },
    { items: wanted.registries, to: values.registries, maxBytes: limits.registryPasswordBytes },
  ] as const;
  for (const { items, to, maxBytes } of kinds) {
    for (const item of items as readonly WantedSecret[]) {
      const { name, source, remark } = item;
      if (source === undefined) continue;
      const path = pathOf(source, folder);
      if (path !== undefined && isOutside(folder, path))
        warnings.push(remark(`reads ${path}, which is outside of the folder of this file`));
      const value = path === undefined ? textOf(source, variable) : contentOf(path);
      // The line break that an editor adds is no part of a password.
      const bytes = typeof value === 'string' || to === values.secrets ? value : withoutLastBreak(value);
      const fault = typeof bytes === 'string' ? bytes : faultOf(bytes, maxBytes);
      if (fault !== undefined) faults.push(remark(fault));
      else if (typeof bytes !== 'string') to.set(name, bytes);
    }
  }
}

function faultOf({ length }: Buffer, maxBytes: number): string | undefined {
  if (length === 0) return 'its value is empty';
  return length > maxBytes ? `its value must be at most ${maxBytes} bytes` : undefined;
}

/** The path of a source that is a file. */
const pathOf = (source: ValueSource, folder: string): string | undefined =>
  'value' in source || source.env !== undefined ? undefined : resolve(folder, withHome(source.file ?? ''));

/** `~/x` → `/root/x` */
export const withHome = (path: string): string => path.replace(/^~(?=\/|$)/, homedir());

/** True also for a link that leads outside; false for a path that does not exist. */
export function isOutside(folder: string, path: string): boolean {
  try {
    const way = relative(realpathSync(folder), realpathSync(path));
    return way === '..' || way.startsWith('../') || isAbsolute(way);
  } catch {
    return false;
  }
}

/** The value, or a message about what is wrong. */
function textOf(source: ValueSource, variable: Lookup): Buffer | string {
  if ('value' in source) return Buffer.from(source.value);
  const value = variable(source.env ?? '');
  return value === undefined ? `the variable ${source.env} is not set: set it to the value` : Buffer.from(value);
}

/** The content, or a message about what is wrong. */
function contentOf(path: string): Buffer | string {
  try {
    if (statSync(path).size > limits.cliInputBytes) return `${path} is larger than ${limits.cliInputBytes} bytes`;
    return readFileSync(path);
  } catch (error) {
    return `${path} can't be read: ${messageOf(error)}`;
  }
}

/**
 * Refuses items that contain a token of this person: somebody else's file could name
 * LONGSHORE_TOKEN, or the file of the profiles, and send it into a container of its own.
 */
export function refuseTokens(wanted: Wanted, values: Values, tokens: readonly string[], { faults }: Remarks): void {
  const sent = [
    ...wanted.secrets.map((item) => ({ item, value: values.secrets.get(item.name) })),
    ...wanted.registries.map((item) => ({ item, value: values.registries.get(item.name) })),
    ...[...wanted.containers, ...wanted.peers].map((item) => ({ item, value: undefined })),
  ];
  const isIn = (item: object, value: Buffer | undefined): boolean => {
    const text = JSON.stringify(item);
    return tokens.some((token) => text.includes(JSON.stringify(token).slice(1, -1)) || value?.includes(token) === true);
  };
  for (const { item, value } of sent) {
    if (isIn(item, value))
      faults.push(
        item.remark('has the token that you sign in with: create another for it ("longshore token create --help")'),
      );
  }
}
