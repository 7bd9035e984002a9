/**
 * What a Compose project is called, and its containers: `<project>-<service>`. As Compose finds the
 * name: `-p`, `COMPOSE_PROJECT_NAME`, `name` in the file, the folder's name.
 */
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { composeFiles } from '../../compose-files.ts';
import { mapOf } from './values.ts';
import { Refused } from '../../terminal/errors.ts';
import { readFile } from '../../terminal/input.ts';
import { BadLine, rawVariablesIn, variablesIn } from './dot-env.ts';
import { BadVariable, interpolated } from '../file/interpolate.ts';
import { SourceFile } from '../file/source.ts';

/** The files that `apply` looks for, the first one that is there counts. */
export const usualFiles = ['longshore.yml', 'longshore.yaml', ...composeFiles] as const;

export const usualFilesIn = (folder: string): string[] => usualFiles.filter((name) => existsSync(join(folder, name)));

type Lookup = (name: string) => string | undefined;

export interface Surroundings {
  /** The folder of the file. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** `-p` */
  readonly project?: string | undefined;
}

/** The variables of `.env` beside the file, under those of the shell. @throws Refused */
export function variablesOf({ folder, env }: Surroundings): Lookup {
  const path = join(folder, '.env');
  const ofShell: Lookup = (name) => env[name];
  const beside = existsSync(path) ? readVariables(path, ofShell) : {};
  return (name) => env[name] ?? (Object.hasOwn(beside, name) ? beside[name] : undefined);
}

/** @throws Refused if it can't be read */
export function readVariables(path: string, valueOf: Lookup, isRaw = false): Record<string, string> {
  const text = readFile(path).toString('utf8');
  try {
    return isRaw ? rawVariablesIn(text, valueOf) : variablesIn(text, valueOf);
  } catch (error) {
    throw error instanceof BadLine ? new Refused(`${path}: ${error.message}`) : error;
  }
}

/** Lower case, without what a project's name may not have. */
const normalised = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9_-]/g, '')
    .replace(/^[_-]+/, '');

const isName = (text: string): boolean => /^[a-z0-9][a-z0-9_-]*$/.test(text);

const form = 'must have lower-case letters, digits, "_" and "-" only, and begin with a letter or digit';

/** @throws Refused if what names it is no name */
export function projectOf(source: SourceFile, valueOf: Lookup, { folder, project }: Surroundings): string {
  const ofVariable = valueOf('COMPOSE_PROJECT_NAME');
  const ofFile = source.textAt('name');
  const named = [
    ['-p', project],
    ['COMPOSE_PROJECT_NAME', ofVariable],
    [`${source.file}: name`, ofFile === undefined ? undefined : filledIn(ofFile, valueOf)],
  ].find(([, text]) => text !== undefined && text !== '');
  if (named !== undefined) {
    const [where = '', name = ''] = named;
    if (!isName(name)) throw new Refused(`${where}: the project's name "${name}" ${form}`);
    return name;
  }
  const name = normalised(basename(folder));
  if (name === '') throw new Refused(`the folder's name can't name a project: give -p, or "name" in ${source.file}`);
  return name;
}

/** A fault in it is told with all others. */
function filledIn(text: string, valueOf: Lookup): string {
  try {
    return interpolated(text, { valueOf, missing: () => '', isLenient: true });
  } catch (error) {
    if (error instanceof BadVariable) return '';
    throw error;
  }
}

export const containerName = (project: string, service: string, exact: unknown): string =>
  exact === undefined || exact === null || exact === '' ? `${project}-${service}` : String(exact);

/** The project of the Compose file in a folder; undefined: it has none. */
export interface Project {
  readonly name: string;
  readonly file: string;
  /** Container name of a service; `undefined` if there is no such service. */
  containerOf(service: string): string | undefined;
}

/** @throws Refused if it can't be read */
export function projectIn({ folder, env }: Surroundings): Project | undefined {
  const [file] = usualFilesIn(folder);
  if (file === undefined || file.startsWith('longshore.')) return undefined;
  const source = new SourceFile(file, readFileSync(join(folder, file), 'utf8'));
  if (source.syntaxFaults.length > 0 || !source.keys.includes('services')) return undefined;
  const valueOf = variablesOf({ folder, env });
  const name = projectOf(source, valueOf, { folder, env });
  source.interpolate(valueOf, true);
  const services = mapOf(mapOf(source.value())?.['services']) ?? {};
  return {
    name,
    file,
    containerOf: (service) =>
      Object.hasOwn(services, service)
        ? containerName(name, service, mapOf(services[service])?.['container_name'])
        : undefined,
  };
}
