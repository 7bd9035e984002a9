/** Reads files into declarations, and reports all of their faults at once. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Terminal } from '../../context.ts';
import { tokensOf } from '../../profiles.ts';
import { Refused, WrongUsage } from '../../terminal/errors.ts';
import { readFile, readSource } from '../../terminal/input.ts';
import { composed } from '../compose/compose.ts';
import type { ReadText as ReadConfig } from '../compose/configs.ts';
import type { EnvFile } from '../compose/environment.ts';
import { readVariables } from '../compose/files.ts';
import { loaded } from '../compose/load.ts';
import { mergeTags } from '../compose/merge.ts';
import { projectOf, sourcesOf, variablesOf, type Surroundings } from '../compose/project.ts';
import type { ComposeRemark } from '../compose/reader.ts';
import { textPaths } from './fields.ts';
import { joined, wantedOf, type Remarks, type Wanted, type WantedContainer } from './model.ts';
import { SourceFile } from './source.ts';
import { plainOf, remarkIn, type Path, type Remark, type Tree } from './tree.ts';
import { checked } from './validate.ts';
import { isOutside, refuseTokens, resolveValues, withHome, type Values } from './values.ts';

/** Declarations of the files; `undefined` if there are faults. */
export interface Read extends Remarks {
  readonly wanted: Wanted | undefined;
  /** Values of secrets and logins, by kind and name. */
  readonly values: Values;
}

type FileTerminal = Pick<Terminal, 'env' | 'stdin' | 'signal'>;

/** Options of the command about Compose files. */
export interface ReadOptions {
  /** `-p` */
  readonly project?: string | undefined;
  /** Keys that may be left out. */
  readonly ignore?: readonly string[] | undefined;
  /** Names of files that are merged over a Compose file, one after another. */
  readonly overrides?: readonly string[] | undefined;
}

interface Given {
  readonly path: string;
  readonly folder: string;
  /** Its YAML documents. */
  readonly sources: readonly [SourceFile, ...SourceFile[]];
}

/**
 * Compose files are merged over the first of them, as Compose merges them; other files stand by
 * themselves.
 * @throws Refused if a file can't be read
 */
export async function readFiles(
  paths: readonly string[],
  terminal: FileTerminal,
  options: ReadOptions = {},
): Promise<Read> {
  const remarks: Remarks = { faults: [], warnings: [] };
  const values: Values = { registries: new Map(), secrets: new Map() };
  const given: Given[] = [];
  for (const path of paths) {
    const text = (await readSource(path, terminal)).toString('utf8');
    const folder = path === '-' ? process.cwd() : dirname(resolve(path));
    given.push({ path, folder, sources: SourceFile.documents(shownName(path), text) });
  }
  const named = sourcesOf(process.cwd(), options.overrides ?? []);
  const isOfCompose = isCompose(named) || given.some(({ sources }) => isCompose(sources));
  const [base, ...over] = isOfCompose ? given.filter(({ sources }) => isOverride(sources)) : [];
  const overrides = base === undefined ? [] : [...over.flatMap(({ sources }) => sources), ...named];
  const files: Wanted[] = [];
  const tokens = tokensOf(terminal.env);
  for (const { folder, sources } of given.filter((one) => !over.includes(one))) {
    const surroundings = { folder, env: terminal.env, ...options };
    const ofBase = sources === base?.sources ? overrides : [];
    const { wanted, faults, warnings, valueOf } = readSources(sources, ofBase, surroundings);
    if (wanted !== undefined) {
      files.push(wanted);
      resolveValues(wanted, folder, valueOf, values, { faults, warnings });
      refuseTokens(wanted, values, tokens, { faults, warnings });
    }
    // One by one: there may be more than a call takes arguments.
    for (const fault of faults.sort(byPlace)) remarks.faults.push(fault);
    for (const warning of warnings.sort(byPlace)) remarks.warnings.push(warning);
  }
  for (const [option, value] of [
    ['-p', options.project],
    ['--ignore', options.ignore],
  ] as const)
    if (value !== undefined && base === undefined && remarks.faults.length === 0)
      throw new WrongUsage(`${option} is for Compose files, and none of these is one`);
  const wanted = joined(files, remarks.faults);
  return { ...remarks, values, wanted: remarks.faults.length > 0 ? undefined : wanted };
}

const shownName = (path: string): string => (path === '-' ? 'standard input' : path);

const byPlace = ({ place: one }: Remark, { place: other }: Remark): number =>
  one.file.localeCompare(other.file) || one.line - other.line || one.column - other.column;

/** One file, with the files that are merged over it. */
interface ReadText extends Remarks {
  /** `undefined` if its form is wrong. Items with faults are left out. */
  readonly wanted: Wanted | undefined;
  /** Variables that were filled in. */
  readonly valueOf: (name: string) => string | undefined;
}

const isCompose = (sources: readonly SourceFile[]): boolean =>
  sources.some(({ keys }) => keys.includes('services') || (keys.includes('include') && !keys.includes('containers')));

/** Of a file that is no Compose file. */
const ownKeys: readonly string[] = ['containers', 'peers', 'registries'];

/** Beside a Compose file, these make one, too. */
const isOverride = (sources: readonly SourceFile[]): boolean =>
  isCompose(sources) ||
  sources.some(({ keys }) => ['networks', 'volumes', 'configs'].some((key) => keys.includes(key)));

/** @throws Refused if what is beside a Compose file can't be read */
export const readText = (path: string, text: string, surroundings: Surroundings & ReadOptions): ReadText =>
  readSources(
    SourceFile.documents(shownName(path), text),
    sourcesOf(process.cwd(), surroundings.overrides ?? []),
    surroundings,
  );

/** @param overrides of a Compose file, one of which may have all services */
function readSources(
  sources: readonly [SourceFile, ...SourceFile[]],
  overrides: readonly SourceFile[],
  surroundings: Surroundings & ReadOptions,
): ReadText {
  const [source, ...others] = sources;
  const ofShell = (name: string): string | undefined => surroundings.env[name];
  const isOfCompose = isCompose([...sources, ...overrides]);
  const faults = sources.flatMap((one) => one.syntaxFaults(isOfCompose ? mergeTags : []));
  if (!isOfCompose && faults.length === 0) faults.push(...others.slice(0, 1).map((one) => one.several()));
  if (faults.length > 0) return { wanted: undefined, faults, warnings: [], valueOf: ofShell };
  if (isOfCompose) return readCompose(source, [...others, ...overrides], surroundings);
  const remarks = source.interpolate(ofShell, false);
  for (const pattern of texts) source.keepTexts(pattern);
  for (const pattern of modes) source.readOctal(pattern);
  const tree = source.tree();
  if (isOverride(sources) && !source.keys.some((key) => ownKeys.includes(key))) {
    const part = remarkIn(tree, [], 'is a part of a Compose file: give the file that has its services, too');
    return { wanted: undefined, faults: [part], warnings: [], valueOf: ofShell };
  }
  const wanted = wantedIn(tree, plainOf(tree), (given) => given, remarks);
  return { ...remarks, valueOf: ofShell, wanted };
}

function readCompose(
  source: SourceFile,
  overrides: readonly SourceFile[],
  surroundings: Surroundings & ReadOptions,
): ReadText {
  const { folder, ignore = [] } = surroundings;
  const beside = variablesOf(surroundings);
  const project = projectOf([source, ...overrides], beside, surroundings);
  const valueOf = (name: string): string | undefined => (name === 'COMPOSE_PROJECT_NAME' ? project : beside(name));
  const { tree, faults, warnings, variableOf } = loaded(source, folder, valueOf, overrides);
  const remarks = { faults: [...faults], warnings: [...warnings] };
  if (tree === undefined) return { ...remarks, valueOf: variableOf, wanted: undefined };
  const pathOf = (given: string): string => {
    const path = resolve(folder, withHome(given));
    if (isOutside(folder, path))
      remarks.warnings.push(remarkIn(tree, [], `reads ${path}, which is outside of the folder of this file`));
    return path;
  };
  const readEnvFile = (file: EnvFile) => envFileAt({ ...file, path: pathOf(file.path) });
  const readText: ReadConfig = (given) => {
    try {
      return { text: readFile(pathOf(given)).toString('utf8') };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { fault: error.message };
    }
  };
  const compose = composed(plainOf(tree), { project, valueOf, ignore, readEnvFile, readText });
  const remark = ({ path, message, at, isOfFile }: ComposeRemark): Remark => {
    const { field, ...rest } = remarkIn(tree, path, message, at);
    return { ...rest, field: isOfFile === true ? '' : field };
  };
  for (const warning of compose.warnings) remarks.warnings.push(remark(warning));
  for (const fault of compose.faults) remarks.faults.push(remark(fault));
  const wanted = wantedIn(tree, compose.file, compose.origin, remarks);
  const withWays = (one: WantedContainer): WantedContainer => ({
    ...one,
    isJob: compose.jobs.has(one.name),
    // A digest already decides what runs.
    isPulled: compose.pulled.has(one.name) && one.document.image.digest === null,
  });
  return {
    ...remarks,
    valueOf: variableOf,
    wanted: wanted && { ...wanted, containers: wanted.containers.map(withWays) },
  };
}

/**
 * Variables of the file, a message about what is wrong with it, or `undefined` if it does not
 * exist.
 */
function envFileAt({ path, isRaw, valueOf }: EnvFile): Record<string, string> | string | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return readVariables(path, valueOf, isRaw);
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

/** Paths whose values stay texts as they are written: `1.10` is no number. */
const texts: readonly Path[] = [
  ...textPaths.map((path) => ['containers', '*', ...path]),
  ['secrets', '*', 'value'],
  ['registries', '*', 'password'],
];
const modes: readonly Path[] = [['containers', '*', 'secrets', 'files', '*', 'mode']];

function wantedIn(tree: Tree, value: unknown, origin: (path: Path) => Path, remarks: Remarks): Wanted | undefined {
  const result = checked(value);
  if (!result.ok) {
    for (const { path, message } of result.faults) remarks.faults.push(remarkIn(tree, origin(path), message, 'key'));
    return undefined;
  }
  if (remarks.faults.length > 0) return undefined;
  return wantedOf(result.file, (path, message) => remarkIn(tree, origin(path), message), remarks);
}
