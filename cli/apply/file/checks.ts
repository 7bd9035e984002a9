/** Faults of an item beyond its schema. Pure. */
import {
  containerDefaults,
  digestPattern,
  namePattern,
  registryPattern,
  repositoryPattern,
  tagPattern,
  type Port,
} from '../../../schemas/api/container.ts';
import type { PolicyBody } from '../../../schemas/api/policy.ts';
import { secretNamePattern } from '../../../schemas/api/secret.ts';
import { envKeyPattern } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { cpuMillis, memBytes } from '../../../schemas/quantity.ts';
import { imageIn } from '../../tenant/image.ts';
import { WrongUsage } from '../../terminal/errors.ts';
import type { ContainerEntry } from './schema.ts';
import type { Remark } from './source.ts';

/** The variable that says which file a container belongs to. */
export const labelVariable = 'LONGSHORE_APPLY';

/** A remark about an item, at a path within it. */
export type RemarkOf = (message: string, ...below: string[]) => Remark;

export const patterns = {
  containers: new RegExp(namePattern),
  secrets: new RegExp(secretNamePattern),
  registries: new RegExp(registryPattern),
  peers: /^[^]{1,64}$/,
  registry: new RegExp(registryPattern),
  repository: new RegExp(repositoryPattern),
  tag: new RegExp(tagPattern),
  digest: new RegExp(digestPattern),
  variable: new RegExp(envKeyPattern),
} as const;

export const forms = {
  containers: 'must begin with a letter or digit and have at most 63 letters, digits, "_", "." and "-"',
  secrets: 'must have 1 to 64 letters, digits, "_" and "-"',
  peers: 'must have 1 to 64 characters',
  registries: 'must be a registry, such as ghcr.io or registry.example.com:5000',
  variable: 'must begin with a letter or "_" and have at most 128 letters, digits, "_", "." and "-"',
} as const;

function* faultsOfEnv(env: Readonly<Record<string, string>>, remark: RemarkOf): Generator<Remark> {
  let bytes = 0;
  for (const [name, value] of Object.entries(env)) {
    if (!patterns.variable.test(name)) yield remark(`the name ${forms.variable}`, 'env', name);
    if (name === labelVariable) yield remark('is set by apply itself: give the file a name', 'env', name);
    if (value.includes('\0')) yield remark("can't contain NUL", 'env', name);
    const size = Buffer.byteLength(value);
    if (size > limits.envValueBytes) yield remark(`must be at most ${limits.envValueBytes} bytes`, 'env', name);
    bytes += size;
  }
  if (bytes > limits.envTotalBytes) yield remark(`must be at most ${limits.envTotalBytes} bytes in all`, 'env');
}

function* faultsOfPorts(ports: readonly Port[], remark: RemarkOf): Generator<Remark> {
  const seen = new Set<string>();
  for (const [at, port] of ports.entries()) {
    const [number, protocol = 'tcp'] = String(port).split('/');
    if (Number(number) > 65_535) yield remark('must be at most 65535', 'ports', String(at));
    if (seen.has(`${number}/${protocol}`)) yield remark('must be distinct', 'ports', String(at));
    seen.add(`${number}/${protocol}`);
  }
}

function* faultsOfImage(image: string, remark: RemarkOf): Generator<Remark> {
  try {
    const { registry, repository, tag, digest } = imageIn(image);
    const parts = { registry, repository, tag: tag ?? containerDefaults.tag, digest };
    for (const [part, text] of Object.entries(parts) as [keyof typeof parts, string | undefined][]) {
      if (text !== undefined && !patterns[part].test(text)) yield remark(`its ${part} "${text}" is not valid`, 'image');
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
  const { image, env = {}, ports = [], cpu_limit, mem_limit, policy = {}, secrets = {} } = entry;
  return [
    ...faultsOfImage(image, remark),
    ...faultsOfEnv(env, remark),
    ...faultsOfPorts(ports, remark),
    ...(cpu_limit !== undefined && cpuMillis(cpu_limit) === undefined ? [remark('must be over 0', 'cpu_limit')] : []),
    ...(mem_limit !== undefined && memBytes(mem_limit) === undefined
      ? [remark('must be between 6m and 16384g', 'mem_limit')]
      : []),
    ...faultsOfPolicy(policy, remark),
    ...faultsOfUses(secrets, remark),
  ];
}
