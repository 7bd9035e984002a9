/** Checks an item beyond its schema. Pure. */
import { fieldOf, namePattern, registryPattern, type FieldName } from '../../../schemas/api/fields/container.ts';
import type { Report } from '../../../schemas/api/fields/kinds.ts';
import type { PolicyBody } from '../../../schemas/api/policy.ts';
import { secretNamePattern } from '../../../schemas/api/secret.ts';
import { envKeyPattern } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { imageIn } from '../../tenant/image.ts';
import { WrongUsage } from '../../terminal/errors.ts';
import { entryNames, imageParts } from './fields.ts';
import type { ContainerEntry } from './schema.ts';
import type { Remark } from './tree.ts';

/** Variable in which development builds of 0.2.0 stored the file that a container belongs to. */
const projectVariable = 'LONGSHORE_APPLY';

/**
 * Name of a Compose project, or of a file of such a build, as a DNS label: `my_app` → `my-app`.
 */
export const projectNamed = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');

/** Fields that name the project of a container. */
export interface ProjectMarks {
  readonly env: Readonly<Record<string, string>>;
  readonly project?: string | null;
}

/** The project of a container, or null. */
export const projectOf = ({ env, project = null }: ProjectMarks): string | null =>
  project ?? (env[projectVariable] === undefined ? null : projectNamed(env[projectVariable]));

/** A remark about an item, at a path within it. */
export type RemarkOf = (message: string, ...below: string[]) => Remark;

export const patterns = {
  containers: new RegExp(namePattern),
  secrets: new RegExp(secretNamePattern),
  registries: new RegExp(registryPattern),
  peers: /^[^]{1,64}$/,
  variable: new RegExp(envKeyPattern),
} as const;

export const forms = {
  containers: 'must begin with a letter or digit and have at most 63 letters, digits, "_", "." and "-"',
  secrets: 'must have 1 to 64 letters, digits, "_" and "-"',
  peers: 'must have 1 to 64 characters',
  registries: 'must be a registry, such as ghcr.io or registry.example.com:5000',
  variable: 'must begin with a letter or "_" and have at most 128 letters, digits, "_", "." and "-"',
} as const;

/** Faults by the rules of the API. */
function faultsOfField(name: FieldName, value: unknown, remark: RemarkOf): Remark[] {
  const faults: Remark[] = [];
  const report: Report = (message, ...below) => {
    faults.push(remark(message, name, ...below));
    return undefined;
  };
  if (value !== undefined) fieldOf(name).parse(value, report);
  return faults;
}

function* faultsOfImage(image: string, remark: RemarkOf): Generator<Remark> {
  try {
    const { registry, repository, tag, digest } = imageIn(image);
    const parts = { registry, repository, tag, digest };
    for (const part of imageParts) {
      const text = parts[part];
      if (faultsOfField(part, text, remark).length > 0) yield remark(`its ${part} "${text}" is not valid`, 'image');
    }
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error;
    yield remark(error.message, 'image');
  }
}

const checks = ['command', 'http', 'tcp', 'none'] as const;

function* faultsOfPolicy({ restart, health }: PolicyBody, remark: RemarkOf): Generator<Remark> {
  if (health == null) return;
  if (checks.filter((kind) => health[kind] !== undefined).length !== 1)
    yield remark('must have one of command, http, tcp and none', 'policy', 'health');
  else if (health.none === true && Object.keys(health).length > 1)
    yield remark('can have nothing beside none', 'policy', 'health');
  if (restart === 'never' && health.restart_unhealthy === true)
    yield remark('cannot be true where restart is never', 'policy', 'health', 'restart_unhealthy');
}

function* faultsOfUses(
  { env = {}, files = {} }: NonNullable<ContainerEntry['secrets']>,
  remark: RemarkOf,
): Generator<Remark> {
  for (const name of Object.keys(env))
    if (!patterns.variable.test(name)) yield remark(`the name ${forms.variable}`, 'secrets', 'env', name);
  for (const path of Object.keys(files))
    if (!path.startsWith('/')) yield remark('the path must be absolute', 'secrets', 'files', path);
  if (Object.keys(env).length + Object.keys(files).length > limits.secretUses)
    yield remark(`must be at most ${limits.secretUses} uses in all`, 'secrets');
}

/** Of a container; its image is that of a name that `imageIn` reads if there are none. */
export function containerFaults(entry: ContainerEntry, remark: RemarkOf): Remark[] {
  const { image, env = {}, policy = {}, secrets = {} } = entry;
  return [
    ...faultsOfImage(image, remark),
    ...(projectVariable in env
      ? [remark('is the mark of an earlier release: leave it out', 'env', projectVariable)]
      : []),
    ...entryNames.flatMap((name) => faultsOfField(name, entry[name], remark)),
    ...faultsOfPolicy(policy, remark),
    ...faultsOfUses(secrets, remark),
  ];
}
