/** The values of secrets and the passwords of logins: from the shell, a file, or as they are. */
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { limits } from '../../../schemas/limits.ts';
import { withoutLastBreak } from '../../terminal/input.ts';
import type { ValueSource, Wanted, WantedSecret } from './model.ts';
import type { Remark } from './source.ts';

export interface Values {
  readonly registries: Map<string, Buffer>;
  readonly secrets: Map<string, Buffer>;
}

type Lookup = (name: string) => string | undefined;

/** Adds the values of a file to `values`. Returns what is wrong with them, without the values. */
export function resolveValues(wanted: Wanted, folder: string, variable: Lookup, values: Values): Remark[] {
  const kinds = [
    { items: wanted.secrets, to: values.secrets, maxBytes: limits.secretBytes },
    { items: wanted.registries, to: values.registries, maxBytes: limits.registryPasswordBytes },
  ] as const;
  return kinds.flatMap(({ items, to, maxBytes }) =>
    items.flatMap((item: WantedSecret): Remark[] => {
      if (item.source === undefined) return [];
      const value = valueOf(item.source, folder, variable);
      if (typeof value === 'string') return [item.remark(value)];
      // The line break that an editor adds is no part of a password.
      const bytes = to === values.registries ? withoutLastBreak(value) : value;
      if (bytes.length === 0) return [item.remark('its value is empty')];
      if (bytes.length > maxBytes) return [item.remark(`its value must be at most ${maxBytes} bytes`)];
      to.set(item.name, bytes);
      return [];
    }),
  );
}

/** The value, or what is wrong. */
function valueOf(source: ValueSource, folder: string, variable: Lookup): Buffer | string {
  if ('value' in source) return Buffer.from(source.value);
  if (source.env !== undefined) {
    const value = variable(source.env);
    return value === undefined ? `the variable ${source.env} is not set: set it to the value` : Buffer.from(value);
  }
  const path = resolve(folder, (source.file ?? '').replace(/^~(?=\/)/, homedir()));
  try {
    if (statSync(path).size > limits.cliInputBytes) return `${path} is larger than ${limits.cliInputBytes} bytes`;
    return readFileSync(path);
  } catch (error) {
    return `${path} can't be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}
