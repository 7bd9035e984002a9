/**
 * Common part of the `set` commands: reads stored settings, merges the given ones, shows the
 * changes, and writes them.
 */
import type { Command } from 'commander';
import type { TSchema } from 'typebox';
import type { Context } from '../context.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { readSource, type Input } from '../terminal/input.ts';
import { isValues, merged, type Values } from '../../lib/values.ts';
import { assigned, changesOf, checkKeys } from './assign.ts';

export interface SetOptions {
  readonly file?: string;
  readonly dryRun?: true;
}

export const settable = (command: Command, example: string): Command =>
  command
    .argument('[settings...]', `Settings as KEY=VALUE, such as ${example}`)
    .option('-f, --file <file>', 'File of settings, YAML or JSON')
    .option('--dry-run', 'Show the changes without making them');

/** The settings in a YAML or JSON file. @throws WrongUsage */
export async function settingsIn(schema: TSchema, path: string, input: Input): Promise<Values> {
  const { parse } = await import('yaml');
  const text = (await readSource(path, input)).toString();
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    throw new WrongUsage(`${path} is neither YAML nor JSON: ${(error as Error).message.split('\n')[0]}`);
  }
  if (!isValues(value)) throw new WrongUsage(`${path} must have settings in it, one KEY: VALUE a line`);
  checkKeys(schema, value);
  return value;
}

/** Stored settings, merged with the given ones. @throws WrongUsage */
export async function settingsWith(
  { terminal }: Context,
  schema: TSchema,
  stored: Values,
  texts: readonly string[],
  { file }: SetOptions,
): Promise<Values> {
  if (texts.length === 0 && file === undefined) {
    const keys = Object.keys((schema as unknown as { readonly properties: object }).properties);
    throw new WrongUsage(`nothing to set: give KEY=VALUE or --file, with keys of ${keys.join(', ')}`);
  }
  const given = file === undefined ? {} : await settingsIn(schema, file, terminal);
  return assigned(schema, merged(stored, given), texts);
}

/** Tells what changes, and makes the change unless it is a dry run, or there is none. */
export async function carryOut(
  { show, tell }: Context,
  name: string,
  [before, after]: readonly [before: Values, after: Values],
  { dryRun }: SetOptions,
  put: () => Promise<unknown>,
): Promise<void> {
  const changes = changesOf(before, after);
  for (const line of changes) tell(line);
  if (changes.length === 0) tell('nothing changes');
  show(changes.length === 0 || dryRun === true ? { name, changes } : await put(), name);
}
