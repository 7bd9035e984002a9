/**
 * Files and name of a Compose project, and the names of its containers: `<project>-<service>`. The
 * name is, as in Compose, the first of: `-p`, `COMPOSE_PROJECT_NAME`, `name` in the file, the
 * folder's name.
 */
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { composeFiles, folderWith } from '../../compose-files.ts';
import { Refused } from '../../terminal/errors.ts';
import { readFile } from '../../terminal/input.ts';
import { projectNamed, projectOf as projectOfContainer, type ProjectMarks } from '../file/checks.ts';
import { BadVariable, interpolated } from '../file/interpolate.ts';
import { SourceFile } from '../file/source.ts';
import { below, isBranch, textOf } from '../file/tree.ts';
import { isFile, readVariables, type Lookup } from './files.ts';
import { loaded } from './load.ts';
import { mergeTags } from './merge.ts';

/**
 * Files that `apply` looks for, in this folder and then in those above; the first one found counts.
 */
export const usualFiles = ['longshore.yml', 'longshore.yaml', ...composeFiles] as const;

/** One of these is merged over a Compose file that was found, not named. */
const overrideFiles = ['compose', 'docker-compose'].flatMap((name) => [
  `${name}.override.yml`,
  `${name}.override.yaml`,
]);

const usualFilesIn = (folder: string): string[] => usualFiles.filter((name) => existsSync(join(folder, name)));

/** The files of a folder if none is named, by their paths relative to it. */
export interface Here {
  readonly file: string;
  /** Files merged over it, one after another. */
  readonly overrides: readonly string[];
  /** Other files that are not used. */
  readonly others: readonly string[];
}

const isOurs = (file: string): boolean => basename(file).startsWith('longshore.');

/** As Compose finds them, `COMPOSE_FILE` included. @throws Refused if `.env` can't be read */
export function filesIn({ folder, env }: Surroundings): Here | undefined {
  const nearest = folderWith(folder, usualFiles) ?? folder;
  const pathOf = (name: string): string => join(relative(folder, nearest), name);
  const [file, ...others] = usualFilesIn(nearest).map(pathOf);
  if (file !== undefined && nearest === folder && isOurs(file)) return { file, overrides: [], others };
  const valueOf = variablesOf({ folder, env });
  const separator = valueOf('COMPOSE_PATH_SEPARATOR') ?? '';
  const named = (valueOf('COMPOSE_FILE') ?? '').split(separator === '' ? ':' : separator);
  const [first, ...rest] = named.filter((name) => name !== '');
  if (first !== undefined) return { file: first, overrides: rest, others: [] };
  if (file === undefined) return undefined;
  const overrides = isOurs(file) ? [] : overrideFiles.filter((name) => existsSync(join(nearest, name))).map(pathOf);
  return { file, overrides: overrides.slice(0, 1), others };
}

/** @throws Refused if one can't be read */
export const sourcesOf = (folder: string, names: readonly string[]): SourceFile[] =>
  names.flatMap((name) => SourceFile.documents(name, readFile(resolve(folder, name)).toString('utf8')));

export interface Surroundings {
  /** The folder of the file. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** `-p` */
  readonly project?: string | undefined;
}

/**
 * The variables of `.env` beside the file, or of the files of `COMPOSE_ENV_FILES`, under those of
 * the shell.
 * @throws Refused
 */
export function variablesOf({ folder, env }: Surroundings): Lookup {
  const named = (env['COMPOSE_ENV_FILES'] ?? '').split(',').filter((name) => name !== '');
  const isOff = /^(?:1|t|true)$/i.test(env['COMPOSE_DISABLE_ENV_FILE'] ?? '');
  const usual = [join(folder, '.env')].filter((path) => !isOff && isFile(path));
  const found: Record<string, string> = {};
  const valueOf: Lookup = (name) => env[name] ?? (Object.hasOwn(found, name) ? found[name] : undefined);
  for (const path of named.length > 0 ? named : usual) Object.assign(found, readVariables(path, valueOf));
  return valueOf;
}

/** Lower case, without characters that a project's name may not have. */
const normalised = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9_-]/g, '')
    .replace(/^[_-]+/, '');

const isName = (text: string): boolean => /^[a-z0-9][a-z0-9_-]*$/.test(text);

const form = 'must have lower-case letters, digits, "_" and "-" only, and begin with a letter or digit';

/**
 * @param sources files, of which the last one with a name counts
 * @throws Refused if the name is not valid
 */
export function projectOf(sources: readonly SourceFile[], valueOf: Lookup, { folder, project }: Surroundings): string {
  const ofVariable = valueOf('COMPOSE_PROJECT_NAME');
  const source = [...sources].reverse().find((one) => one.textAt('name') !== undefined) ?? sources[0];
  const ofFile = source?.textAt('name');
  const file = source?.file ?? '';
  const named = [
    ['-p', project],
    ['COMPOSE_PROJECT_NAME', ofVariable],
    [`${file}: name`, ofFile === undefined ? undefined : filledIn(ofFile, valueOf)],
  ].find(([, text]) => text !== undefined && text !== '');
  if (named !== undefined) {
    const [where = '', name = ''] = named;
    if (!isName(name)) throw new Refused(`${where}: the project's name "${name}" ${form}`);
    return name;
  }
  const name = normalised(basename(folder));
  if (name === '') throw new Refused(`the folder's name can't name a project: give -p, or "name" in ${file}`);
  return name;
}

/** An empty text if a variable is malformed; the reader of the file reports that fault. */
function filledIn(text: string, valueOf: Lookup): string {
  try {
    return interpolated(text, { valueOf, missing: () => '', isLenient: true });
  } catch (error) {
    if (error instanceof BadVariable) return '';
    throw error;
  }
}

/** @param exact `container_name` */
export const containerName = (project: string, service: string, exact: unknown): string =>
  exact === undefined || exact === null || exact === '' ? `${project}-${service}` : String(exact);

/** The project of the Compose file in a folder. */
export interface Project {
  readonly name: string;
  readonly file: string;
  /** Container name of a service; `undefined` if there is no such service. */
  containerOf(service: string): string | undefined;
  /** Another project that the container belongs to; `undefined` if there is none. */
  otherOf(container: ProjectMarks): string | undefined;
}

/** @throws Refused if it can't be read */
export function projectIn({ folder, env }: Surroundings): Project | undefined {
  const here = filesIn({ folder, env });
  if (here === undefined || isOurs(here.file)) return undefined;
  const { file } = here;
  const [source, ...overrides] = sourcesOf(folder, [file, ...here.overrides]);
  if (source === undefined || source.syntaxFaults(mergeTags).length > 0) return undefined;
  const surroundings = { folder: dirname(resolve(folder, file)), env };
  const valueOf = variablesOf(surroundings);
  const name = projectOf([source, ...overrides], valueOf, surroundings);
  const services = below(loaded(source, surroundings.folder, valueOf, overrides).tree, 'services');
  if (!isBranch(services)) return undefined;
  return {
    name,
    file,
    containerOf: (service) =>
      services.entries.has(service)
        ? containerName(name, service, textOf(below(services, service, 'container_name')))
        : undefined,
    otherOf: (container) => {
      const other = projectOfContainer(container);
      return other === null || other === projectNamed(name) ? undefined : other;
    },
  };
}
