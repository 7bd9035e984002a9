/**
 * Keys of a Compose file by what leaving them out does: those that Longshore reads, and those that
 * change nothing that runs. Any other is a fault, unless its author says that it may be ignored.
 */
import type { Values } from '../../../lib/values.ts';
import type { Path } from '../file/tree.ts';
import { booleanOf } from './values.ts';

export interface Keys {
  readonly read: readonly string[];
  /** Keys that change nothing that runs. */
  readonly harmless: readonly string[];
}

export const keysOf = {
  top: { read: ['name', 'services', 'secrets', 'configs', 'networks'], harmless: ['version', 'volumes'] },
  service: {
    read: [
      ...['image', 'container_name', 'environment', 'env_file', 'ports', 'deploy', 'mem_limit', 'cpus'],
      ...['healthcheck', 'restart', 'stop_signal', 'stop_grace_period', 'secrets', 'depends_on', 'profiles'],
      ...['networks', 'network_mode', 'scale', 'labels', 'command', 'entrypoint', 'user', 'working_dir', 'tmpfs'],
      ...['shm_size', 'init', 'read_only', 'ulimits', 'volumes', 'configs', 'pull_policy'],
      ...['links', 'memswap_limit', 'security_opt'],
    ],
    harmless: [
      ...['build', 'annotations', 'logging', 'expose', 'attach', 'develop', 'oom_score_adj'],
      ...['mem_reservation', 'mem_swappiness', 'cpu_shares', 'blkio_config'],
    ],
  },
  deploy: {
    read: ['resources', 'replicas', 'restart_policy', 'mode'],
    harmless: ['placement', 'labels', 'update_config', 'rollback_config', 'endpoint_mode'],
  },
  resources: { read: ['limits', 'reservations'], harmless: [] },
  tmpfsVolume: { read: ['type', 'target', 'tmpfs'], harmless: ['source', 'consistency'] },
  tmpfsOptions: { read: ['size'], harmless: [] },
  ulimit: { read: ['soft', 'hard'], harmless: [] },
  limits: { read: ['cpus', 'memory'], harmless: [] },
  reservations: { read: [], harmless: ['cpus', 'memory'] },
  restartPolicy: { read: ['condition', 'max_attempts'], harmless: ['delay', 'window'] },
  healthcheck: {
    read: ['test', 'disable', 'interval', 'timeout', 'retries', 'start_period'],
    harmless: ['start_interval'],
  },
  dependsOn: { read: ['condition', 'required'], harmless: [] },
  serviceNetwork: { read: ['aliases'], harmless: ['priority', 'gw_priority'] },
  network: {
    read: ['driver', 'external', 'internal'],
    harmless: ['name', 'attachable', 'labels', 'driver_opts', 'enable_ipv4', 'enable_ipv6', 'ipam'],
  },
  port: { read: ['target', 'published', 'protocol', 'host_ip'], harmless: ['mode', 'name', 'app_protocol'] },
  envFile: { read: ['path', 'required', 'format'], harmless: [] },
  secretUse: { read: ['source', 'target', 'uid', 'gid', 'mode'], harmless: [] },
  secret: { read: ['file', 'environment', 'external', 'name'], harmless: ['labels'] },
  configUse: { read: ['source', 'target', 'mode', 'uid', 'gid'], harmless: [] },
  config: { read: ['file', 'environment', 'content', 'external'], harmless: ['name', 'labels'] },
} as const satisfies Readonly<Record<string, Keys>>;

/** Keys whose text `"false"` means false. */
const switches = [
  ...['oom_kill_disable', 'privileged', 'stdin_open', 'tty', 'use_api_socket', 'external', 'internal'],
  // A key of a dependency.
  'restart',
];
/** Keys whose value of zero or less means no limit. */
const counts = ['pids', 'pids_limit'];

/** True if the value has the same effect as an absent key. */
export function isNothing(key: string, value: unknown): boolean {
  if (value === null || value === undefined || value === false) return true;
  if (switches.includes(key) && booleanOf(value) === false) return true;
  if (counts.includes(key) && Number(value) <= 0) return true;
  return typeof value === 'object' ? Object.keys(value).length === 0 : value === '';
}

/** `command`, `deploy.replicas` or `services.web.command`: each names the key. */
export const namesOf = (path: Path): string[] => [path.at(-1) ?? '', path.slice(2).join('.'), path.join('.')];

/** The names in `x-longshore-ignore`. */
export function ignoredIn(values: Values): string[] {
  const given = values['x-longshore-ignore'];
  if (typeof given === 'string') return [given];
  return Array.isArray(given) ? given.map(String) : [];
}

/** Many keys in a line: `version, logging (web, db), labels (12 services)`. */
export function listOfKeys(paths: readonly Path[]): string {
  const services = new Map<string, Set<string>>();
  for (const path of paths) {
    const [kind, name = '', ...below] = path;
    const isOfService = kind === 'services' && below.length > 0;
    const key = isOfService ? below.filter((part) => !/^\d+$/.test(part)).join('.') : path.join('.');
    const names = services.get(key) ?? new Set();
    services.set(key, isOfService ? names.add(name) : names);
  }
  const text = ([key, names]: readonly [string, ReadonlySet<string>]): string => {
    if (names.size === 0) return key;
    return `${key} (${names.size > 3 ? `${names.size} services` : [...names].join(', ')})`;
  };
  return [...services].map(text).join(', ');
}
