/**
 * The part of a Compose file that Longshore has, as a file of `apply`; every key that is ignored is
 * named. As the Compose specification has it: https://github.com/compose-spec/compose-spec. Pure.
 */
import { textIn, type Values } from '../../../lib/values.ts';
import { commandOf, cpusText, listOf, mapOf, memoryText, portsOf, secondsOf } from './compose-values.ts';
import type { Path } from './source.ts';

export interface Composed {
  /** Of the form of `ApplyFile`, to be checked as such. */
  readonly file: unknown;
  /** Where in the Compose file a path of `file` comes from. */
  readonly origin: (path: Path) => Path;
  readonly ignored: readonly ComposeRemark[];
  readonly faults: readonly ComposeRemark[];
}

export interface ComposeRemark {
  readonly path: Path;
  readonly message: string;
}

/** Collects what is said of a file, at paths of the Compose file. */
class Reader {
  readonly ignored: ComposeRemark[] = [];
  readonly faults: ComposeRemark[] = [];

  ignore(path: Path, message = 'is ignored'): void {
    this.ignored.push({ path, message });
  }

  /** Names all keys but these, and those that begin with `x-`. */
  ignoreOthers(path: Path, values: Values, known: readonly string[]): void {
    for (const key of Object.keys(values))
      if (!known.includes(key) && !key.startsWith('x-')) this.ignore([...path, key]);
  }

  /** The result of `read`, or a fault if that is undefined. Absent stays absent. */
  take<T>(path: Path, value: unknown, read: (value: unknown) => T | undefined, form: string): T | undefined {
    if (value === undefined || value === null) return undefined;
    const result = read(value);
    if (result === undefined) this.faults.push({ path, message: `must be ${form}` });
    return result;
  }
}

const noBuilds = 'Longshore builds no images';

const withoutAbsent = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/** @param valueOf a variable of the shell: `environment` may name one without its value */
export function composed(value: unknown, valueOf: (name: string) => string | undefined): Composed {
  const reader = new Reader();
  const top = mapOf(value) ?? {};
  reader.ignoreOthers([], top, ['name', 'services', 'secrets']);
  const services = reader.take(['services'], top['services'], mapOf, 'a map of services') ?? {};
  const file = withoutAbsent({
    name: top['name'],
    secrets: secretsOf(reader, top['secrets']),
    containers: Object.fromEntries(
      inOrder(reader, services).flatMap((name) => {
        const path = ['services', name];
        const service = reader.take(path, services[name], mapOf, 'a map');
        if (service === undefined) return [];
        if (service['profiles'] !== undefined) {
          reader.ignore([...path, 'profiles'], 'leaves the service out, as Compose does');
          return [];
        }
        if (service['image'] === undefined && service['build'] !== undefined) {
          reader.faults.push({
            path: [...path, 'build'],
            message: `${noBuilds}: push an image, and name it in "image"`,
          });
          return [];
        }
        return [[name, serviceOf(reader, path, service, valueOf)] as const];
      }),
    ),
  });
  return { file, origin: originOf, ignored: reader.ignored, faults: reader.faults };
}

/** Behind what they depend on. */
function inOrder(reader: Reader, services: Values): string[] {
  const placed = new Set<string>();
  const visit = (name: string, above: readonly string[]): void => {
    if (placed.has(name)) return;
    const path = ['services', name, 'depends_on'];
    if (above.includes(name)) {
      reader.faults.push({ path, message: `goes in a circle: ${[...above, name].join(' → ')}` });
      return;
    }
    const on = mapOf(services[name])?.['depends_on'];
    const names = Array.isArray(on) ? on.map(String) : Object.keys(mapOf(on) ?? {});
    for (const [other, how] of Object.entries(mapOf(on) ?? {})) {
      reader.ignoreOthers([...path, other], mapOf(how) ?? {}, ['condition']);
      if (mapOf(how)?.['condition'] === 'service_completed_successfully')
        reader.ignore([...path, other, 'condition'], 'is ignored: it is waited for until it runs');
    }
    for (const other of names) {
      if (Object.hasOwn(services, other)) visit(other, [...above, name]);
      else reader.faults.push({ path, message: `names "${other}", which is no service` });
    }
    placed.add(name);
  };
  for (const name of Object.keys(services)) visit(name, []);
  return [...placed];
}

const knownOfService = ['image', 'environment', 'ports', 'deploy', 'healthcheck', 'restart', 'secrets', 'depends_on'];
const knownStops = ['stop_signal', 'stop_grace_period'];

function serviceOf(reader: Reader, path: Path, service: Values, valueOf: (name: string) => string | undefined): Values {
  reader.ignoreOthers(path, service, [...knownOfService, ...knownStops]);
  const { cpus, memory } = limitsOf(reader, path, service['deploy']);
  return withoutAbsent({
    image: service['image'],
    env: reader.take(
      [...path, 'environment'],
      service['environment'],
      (value) => environmentOf(value, valueOf),
      'a map of texts, or a list of NAME=value',
    ),
    ports: portList(reader, [...path, 'ports'], service['ports']),
    cpu_limit: cpus,
    mem_limit: memory,
    policy: policyOf(reader, path, service),
    secrets: usesOf(reader, [...path, 'secrets'], service['secrets']),
  });
}

function environmentOf(value: unknown, valueOf: (name: string) => string | undefined): Values | undefined {
  const pairs = Array.isArray(value)
    ? value.map((item): [string, unknown] => {
        const text = String(item);
        const at = text.indexOf('=');
        return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
      })
    : mapOf(value) && Object.entries(mapOf(value) ?? {});
  return (
    pairs &&
    Object.fromEntries(
      pairs.flatMap(([name, given]) => {
        const text = given === null ? valueOf(name) : given;
        return text === undefined ? [] : [[name, text]];
      }),
    )
  );
}

function portList(reader: Reader, path: Path, value: unknown): unknown {
  const items = reader.take(path, value, listOf, 'a list');
  return items?.flatMap((item, at) => {
    const here = [...path, String(at)];
    const read = reader.take(here, item, portsOf, 'a port like 8080, 8080:80 or 53:53/udp');
    if (read?.published !== undefined)
      reader.ignore(here, `the host's port ${read.published} is ignored: Longshore chooses one`);
    if (mapOf(item) !== undefined) reader.ignoreOthers(here, mapOf(item) ?? {}, ['target', 'published', 'protocol']);
    return read?.ports ?? [];
  });
}

function limitsOf(reader: Reader, path: Path, value: unknown) {
  const below = (parent: Values, at: Path, key: string): [Values, Path] => {
    reader.ignoreOthers(at, parent, [key]);
    return [reader.take([...at, key], parent[key], mapOf, 'a map') ?? {}, [...at, key]];
  };
  const deploy = reader.take([...path, 'deploy'], value, mapOf, 'a map') ?? {};
  const [resources, atResources] = below(deploy, [...path, 'deploy'], 'resources');
  const [bounds, at] = below(resources, atResources, 'limits');
  reader.ignoreOthers(at, bounds, ['cpus', 'memory']);
  return {
    cpus: reader.take([...at, 'cpus'], bounds['cpus'], cpusText, 'a number of CPUs, like 0.5'),
    memory: reader.take([...at, 'memory'], bounds['memory'], memoryText, 'a size, like 256m'),
  };
}

/** Compose starts nothing again unless the file says so. */
const restartOf = (value: unknown): string | undefined => {
  const [kind] = String(value).split(':');
  if (kind === 'no') return 'never';
  if (kind === 'always' || kind === 'unless-stopped') return 'always';
  return kind === 'on-failure' ? 'on_failure' : undefined;
};

const restartForm = '"no" in quotes, always, on-failure or unless-stopped';

function policyOf(reader: Reader, path: Path, service: Values): Values {
  const restart = service['restart'];
  if (/^on-failure:/.test(String(restart)))
    reader.ignore([...path, 'restart'], 'its number of attempts is ignored: it is started again as often as it fails');
  const grace = [...path, 'stop_grace_period'];
  return withoutAbsent({
    restart: reader.take([...path, 'restart'], restart ?? 'no', restartOf, restartForm),
    stop_signal: service['stop_signal'],
    stop_grace_seconds: reader.take(grace, service['stop_grace_period'], secondsOf, 'a time, like 1m30s'),
    health: healthOf(reader, [...path, 'healthcheck'], service['healthcheck']),
  });
}

/** What Docker takes for absent times. */
const dockerTimes = { interval: '30s', timeout: '30s', start_period: '0s' } as const;

function healthOf(reader: Reader, path: Path, value: unknown): Values | undefined {
  const check = reader.take(path, value, mapOf, 'a map');
  if (check === undefined) return undefined;
  reader.ignoreOthers(path, check, ['test', 'disable', 'retries', ...Object.keys(dockerTimes)]);
  const test = check['test'];
  if (check['disable'] === true || (Array.isArray(test) && test[0] === 'NONE')) return undefined;
  if (test === undefined) {
    reader.ignore(path, 'has no test, and is ignored: that of the image is not known');
    return undefined;
  }
  const time = (key: keyof typeof dockerTimes, least: number): number | undefined => {
    const seconds = reader.take([...path, key], check[key] ?? dockerTimes[key], secondsOf, 'a time, like 30s');
    return seconds === undefined ? undefined : Math.max(least, seconds);
  };
  return withoutAbsent({
    command: reader.take([...path, 'test'], test, commandOf, 'a command, or a list that begins with CMD or CMD-SHELL'),
    interval: time('interval', 1),
    timeout: time('timeout', 1),
    start_period: time('start_period', 0),
    retries: check['retries'],
  });
}

const secretsFolder = '/run/secrets/';
/** As Compose mounts them. */
const secretMode = 0o444;

function usesOf(reader: Reader, path: Path, value: unknown): Values | undefined {
  const items = reader.take(path, value, listOf, 'a list');
  if (items === undefined) return undefined;
  const files = items.flatMap((item, at) => {
    const here = [...path, String(at)];
    const use = typeof item === 'string' ? { source: item } : reader.take(here, item, mapOf, 'a name, or a map');
    if (use === undefined) return [];
    reader.ignoreOthers(here, use, ['source', 'target', 'uid', 'gid', 'mode']);
    const source = textIn(use['source']);
    const target = textIn(use['target']) ?? source ?? '';
    const id = (key: string): number | undefined => (use[key] === undefined ? undefined : Number(use[key]));
    const file = { secret: source, mode: use['mode'] ?? secretMode, uid: id('uid'), gid: id('gid') };
    return [[target.startsWith('/') ? target : `${secretsFolder}${target}`, withoutAbsent(file)] as const];
  });
  return { files: Object.fromEntries(files) };
}

function secretsOf(reader: Reader, value: unknown): Values | undefined {
  const all = reader.take(['secrets'], value, mapOf, 'a map');
  if (all === undefined) return undefined;
  const entries = Object.entries(all).flatMap(([name, given]) => {
    const path = ['secrets', name];
    const secret = reader.take(path, given, mapOf, 'a map') ?? {};
    reader.ignoreOthers(path, secret, ['file', 'environment', 'external']);
    // It is on the server already, or the plan says that it is not.
    if (secret['external'] === true) return [];
    const from = withoutAbsent({ file: secret['file'], env: secret['environment'] });
    return [[name, { value_from: from }] as const];
  });
  return Object.fromEntries(entries);
}

const fields: Readonly<Record<string, Path>> = {
  env: ['environment'],
  cpu_limit: ['deploy', 'resources', 'limits', 'cpus'],
  mem_limit: ['deploy', 'resources', 'limits', 'memory'],
};
const policyFields: Readonly<Record<string, Path>> = {
  health: ['healthcheck'],
  stop_grace_seconds: ['stop_grace_period'],
};

function originOf([kind, name, field, below, ...rest]: Path): Path {
  if (kind !== 'containers' || name === undefined) return [kind, name].filter((part) => part !== undefined);
  const service = ['services', name];
  if (field === undefined) return service;
  if (field === 'policy') return [...service, ...(policyFields[below ?? ''] ?? [below ?? '']), ...rest];
  if (field === 'secrets') return [...service, 'secrets'];
  return [...service, ...(fields[field] ?? [field]), ...(below === undefined ? [] : [below])];
}
