/** From the names of files to what they declare, with all of their faults at once. */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import type { Terminal } from '../../context.ts';
import { Refused } from '../../terminal/errors.ts';
import { readSource } from '../../terminal/input.ts';
import { composed } from './compose.ts';
import { joined, wantedOf, type Remarks, type Wanted } from './model.ts';
import { SourceFile, type Path, type Remark } from './source.ts';
import { checked } from './validate.ts';
import { resolveValues, type Values } from './values.ts';

/** What the files declare; undefined beside faults. */
export interface Read extends Remarks {
  readonly wanted: Wanted | undefined;
  /** Of secrets and logins, by kind and name. */
  readonly values: Values;
}

type FileTerminal = Pick<Terminal, 'env' | 'stdin' | 'signal'>;

/** @throws Refused if a file can't be read */
export async function readFiles(paths: readonly string[], terminal: FileTerminal): Promise<Read> {
  const remarks: Remarks = { faults: [], warnings: [] };
  const values: Values = { registries: new Map(), secrets: new Map() };
  const files: Wanted[] = [];
  for (const path of paths) {
    const folder = path === '-' ? process.cwd() : dirname(resolve(path));
    const text = (await readSource(path, terminal)).toString('utf8');
    const { wanted, faults, warnings } = readText(path, text, { folder, env: terminal.env });
    if (wanted !== undefined) {
      files.push(wanted);
      faults.push(...resolveValues(wanted, folder, terminal.env, values));
    }
    // One by one: there may be more than a call takes arguments.
    for (const fault of faults.sort(byPlace)) remarks.faults.push(fault);
    for (const warning of warnings.sort(byPlace)) remarks.warnings.push(warning);
  }
  const wanted = joined(files, remarks.faults);
  return { ...remarks, values, wanted: remarks.faults.length > 0 ? undefined : wanted };
}

const byPlace = ({ place: one }: Remark, { place: other }: Remark): number =>
  one.line - other.line || one.column - other.column;

interface Surroundings {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
}

/** What one file declares; undefined where its form is wrong. Items with faults are left out. */
export function readText(
  path: string,
  text: string,
  { folder, env }: Surroundings,
): Remarks & { readonly wanted: Wanted | undefined } {
  const source = new SourceFile(path === '-' ? 'standard input' : path, text);
  const faults = source.syntaxFaults;
  if (faults.length > 0) return { wanted: undefined, faults, warnings: [] };
  const isCompose = source.keys.includes('services');
  const beside = isCompose ? dotEnv(folder) : {};
  const valueOf = (name: string): string | undefined => env[name] ?? beside[name];
  const remarks = source.interpolate(valueOf, isCompose);
  for (const pattern of texts) source.keepTexts(pattern);
  for (const pattern of modes) source.readOctal(pattern);
  const value = valueIn(source, remarks.faults);
  if (!isCompose) return { ...remarks, wanted: wantedIn(source, value, (given) => given, remarks) };
  const compose = composed(value, valueOf);
  for (const { path: at, message } of compose.ignored) remarks.warnings.push(source.remark(at, message, 'key'));
  for (const { path: at, message } of compose.faults) remarks.faults.push(source.remark(at, message));
  return { ...remarks, wanted: wantedIn(source, compose.file, compose.origin, remarks) };
}

/** Whose values are texts as they are written: `1.10` is no number. */
const texts: readonly Path[] = [
  ['containers', '*', 'env', '*'],
  ['containers', '*', 'cpu_limit'],
  ['containers', '*', 'mem_limit'],
  ['secrets', '*', 'value'],
  ['registries', '*', 'password'],
  ['services', '*', 'environment', '*'],
];
const modes: readonly Path[] = [
  ['containers', '*', 'secrets', 'files', '*', 'mode'],
  ['services', '*', 'secrets', '*', 'mode'],
];

function valueIn(source: SourceFile, faults: Remark[]): unknown {
  try {
    return source.value();
  } catch (error) {
    faults.push(source.remark([], error instanceof Error ? error.message : String(error)));
    return undefined;
  }
}

/** Of the project's folder, as Compose reads it. */
function dotEnv(folder: string): Record<string, string | undefined> {
  try {
    return parseEnv(readFileSync(join(folder, '.env'), 'utf8'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {};
    throw new Refused(`${join(folder, '.env')} can't be read: ${String(error)}`);
  }
}

function wantedIn(
  source: SourceFile,
  value: unknown,
  origin: (path: Path) => Path,
  remarks: Remarks,
): Wanted | undefined {
  const result = checked(value);
  if (!result.ok) {
    for (const { path, message } of result.faults) remarks.faults.push(source.remark(origin(path), message, 'key'));
    return undefined;
  }
  if (remarks.faults.length > 0) return undefined;
  return wantedOf(result.file, (path, message) => source.remark(origin(path), message), remarks);
}
