/**
 * A Compose file as a file of `apply`. A key that changes what runs and that Longshore can't do is
 * a fault, unless its author says that it may be left out. As the Compose specification has it:
 * https://github.com/compose-spec/compose-spec. Pure.
 */
import { textIn, type Values } from '../../../lib/values.ts';
import { fieldOf } from '../../../schemas/api/fields/container.ts';
import { projectNamed } from '../file/checks.ts';
import type { EntryName } from '../file/fields.ts';
import type { Path } from '../file/source.ts';
import { keysOf, listOfKeys } from './keys.ts';
import { policyOf } from './policy.ts';
import { containerName } from './project.ts';
import { Reader, type ComposeRemark } from './reader.ts';
import { countOf, cpusText, isZero, listOf, mapOf, memoryText, pairsOf, portsOf } from './values.ts';

export interface Composed {
  /** Of the form of `ApplyFile`, to be checked as such. */
  readonly file: unknown;
  /** Path in the Compose file that a path of `file` comes from. */
  readonly origin: (path: Path) => Path;
  readonly warnings: readonly ComposeRemark[];
  readonly faults: readonly ComposeRemark[];
  /** Containers that are waited for to their end. */
  readonly jobs: ReadonlySet<string>;
}

export interface Composing {
  readonly project: string;
  /** A variable of the shell, or of `.env`. */
  readonly valueOf: (name: string) => string | undefined;
  /** Keys that may be left out. */
  readonly ignore: readonly string[];
  /** The variables of a file, by its name in the Compose file; a text says what is wrong. */
  readonly readEnvFile: (path: string, isRaw: boolean) => Readonly<Record<string, string>> | string | undefined;
}

const withoutAbsent = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

export function composed(value: unknown, composing: Composing): Composed {
  const { project, ignore } = composing;
  const top = mapOf(value) ?? {};
  const reader = new Reader(ignore, top);
  reader.others([], top, keysOf.top);
  const services = reader.take(['services'], top['services'], mapOf, 'a map of services') ?? {};
  const secrets = secretsOf(reader, top['secrets'], project);
  const names = new Map<string, string>();
  const jobs = new Set<string>();
  const containers = new Map<string, Values>();
  const ran = new Set<string>();
  for (const name of inOrder(reader, services, composing, ran)) {
    const path = ['services', name];
    const service = reader.take(path, services[name] ?? {}, mapOf, 'a map');
    if (service === undefined) continue;
    reader.enter(name, service);
    const called = containerName(project, name, service['container_name']);
    const read = serviceOf(reader, path, service, composing, secrets.names);
    if (read === undefined) continue;
    if (containers.has(called)) reader.fault(path, `"${called}" is the name of another service's container, too`);
    containers.set(called, read.container);
    names.set(called, name);
    if (read.isJob || ran.has(name)) jobs.add(called);
  }
  const file = withoutAbsent({
    name: projectNamed(project),
    secrets: secrets.declared,
    containers: Object.fromEntries(containers),
  });
  noteAll(reader, containers);
  return { file, origin: originIn(names, secrets.keys), warnings: reader.warnings, faults: reader.faults, jobs };
}

/** Remarks about keys that are left out, one line for each kind. */
function noteAll(reader: Reader, containers: ReadonlyMap<string, Values>): void {
  const note = (paths: readonly Path[], message: string): void => {
    const [path] = paths;
    if (path !== undefined)
      reader.warnings.push({ path, message: `${message}: ${listOfKeys(paths)}`, isOfFile: true, at: 'key' });
  };
  note(reader.harmless, 'left out, which changes nothing that runs');
  note(reader.ignored, 'left out, as asked, although it changes what runs');
  if (containers.size > 1) {
    const message = `the ${containers.size} services can't reach each other: there is no network between containers yet`;
    reader.warnings.push({ path: ['services'], message, isOfFile: true, at: 'key' });
  }
}

interface Dependency {
  readonly on: string;
  readonly isRequired: boolean;
  readonly isToEnd: boolean;
}

function dependenciesOf(reader: Reader, name: string, service: Values): Dependency[] {
  const path = ['services', name, 'depends_on'];
  const given = service['depends_on'];
  const links = (listOf(service['links']) ?? []).map((link) => String(link).split(':')[0] ?? '');
  const ofLinks = links.map((on) => ({ on, isRequired: false, isToEnd: false }));
  if (Array.isArray(given)) {
    return [...given.map((on) => ({ on: String(on), isRequired: true, isToEnd: false })), ...ofLinks];
  }
  const ofMap = Object.entries(mapOf(given) ?? {}).map(([on, how]) => {
    const { condition, required, ...rest } = mapOf(how) ?? {};
    reader.others([...path, on], { ...rest }, keysOf.dependsOn);
    return { on, isRequired: required !== false, isToEnd: condition === 'service_completed_successfully' };
  });
  return [...ofMap, ...ofLinks];
}

/**
 * Those that their profiles do not leave out, behind what they depend on.
 * @param ran gets those that others wait for to their end
 */
function inOrder(reader: Reader, services: Values, { valueOf }: Composing, ran: Set<string>): string[] {
  const profiles = (valueOf('COMPOSE_PROFILES') ?? '').split(',').map((profile) => profile.trim());
  const isActive = (name: string): boolean => {
    const own = listOf(mapOf(services[name])?.['profiles']) ?? [];
    return own.length === 0 || profiles.includes('*') || own.some((profile) => profiles.includes(String(profile)));
  };
  const placed = new Set<string>();
  const visit = (name: string, above: readonly string[]): void => {
    if (placed.has(name)) return;
    const path = ['services', name, 'depends_on'];
    if (above.includes(name)) return reader.fault(path, `goes in a circle: ${[...above, name].join(' → ')}`);
    for (const { on, isRequired, isToEnd } of dependenciesOf(reader, name, mapOf(services[name]) ?? {})) {
      const isThere = Object.hasOwn(services, on);
      if (isThere && isActive(on)) visit(on, [...above, name]);
      else if (isThere && isRequired)
        reader.fault(path, `names "${on}", which its profiles leave out: name one of them in COMPOSE_PROFILES`);
      else if (isRequired) reader.fault(path, `names "${on}", which is no service`);
      if (isToEnd) ran.add(on);
    }
    placed.add(name);
  };
  const left = Object.keys(services).filter((name) => !isActive(name));
  for (const name of Object.keys(services)) if (isActive(name)) visit(name, []);
  const [first] = left;
  if (first !== undefined) {
    const message = `left out by their profiles, as in Compose: ${left.join(', ')}`;
    reader.warnings.push({ path: ['services', first, 'profiles'], message, isOfFile: true, at: 'key' });
  }
  return [...placed];
}

interface ReadService {
  readonly container: Values;
  readonly isJob: boolean;
}

function serviceOf(
  reader: Reader,
  path: Path,
  service: Values,
  composing: Composing,
  secrets: ReadonlyMap<string, string>,
): ReadService | undefined {
  // A service that is built, or extends another, has no image of its own: that is said instead.
  if (service['image'] === undefined && service['build'] !== undefined) {
    reader.fault([...path, 'build'], 'Longshore builds no images: push an image, and name it in "image"');
    return undefined;
  }
  reader.others(path, service, keysOf.service);
  if (service['image'] === undefined && service['extends'] !== undefined) return undefined;
  refuseNetworks(reader, path, service);
  const { cpus, memory } = limitsOf(reader, path, service);
  const { policy, isJob } = policyOf(reader, path, service);
  const container = withoutAbsent({
    image: service['image'],
    env: environmentOf(reader, path, service, composing),
    ports: portList(reader, [...path, 'ports'], service['ports']),
    cpu_limit: cpus,
    mem_limit: memory,
    labels: labelsOf(reader, [...path, 'labels'], service['labels']),
    policy: withoutAbsent({
      ...policy,
      ...(mapOf(policy['health']) === undefined ? {} : { health: withoutAbsent(mapOf(policy['health']) ?? {}) }),
    }),
    secrets: usesOf(reader, [...path, 'secrets'], service['secrets'], secrets),
  });
  return { container, isJob };
}

/** All containers are on one network, which no file can choose. */
function refuseNetworks(reader: Reader, path: Path, service: Values): void {
  const networks = service['networks'];
  const names = Array.isArray(networks) ? networks.map(String) : Object.keys(mapOf(networks) ?? {});
  const others = names.filter((name) => name !== 'default');
  reader.lacks([...path, 'networks'], others);
  const mode = service['network_mode'];
  reader.lacks([...path, 'network_mode'], ['bridge', 'default'].includes(String(mode)) ? null : mode);
}

/** `environment` wins over files, and a later file over an earlier one. */
function environmentOf(
  reader: Reader,
  path: Path,
  service: Values,
  { valueOf, readEnvFile }: Composing,
): Values | undefined {
  const given = service['env_file'];
  const files = given === undefined || given === null ? [] : Array.isArray(given) ? given : [given];
  const ofFiles = files.map((item: unknown, at): Readonly<Record<string, string>> => {
    const here = Array.isArray(given) ? [...path, 'env_file', String(at)] : [...path, 'env_file'];
    const file = typeof item === 'string' ? { path: item } : reader.take(here, item, mapOf, 'a path, or a map');
    if (file === undefined) return {};
    reader.others(here, file, keysOf.envFile);
    const found = readEnvFile(String(file['path']), file['format'] === 'raw');
    if (typeof found === 'string') reader.fault(here, found);
    else if (found === undefined && file['required'] !== false)
      reader.fault(here, `there is no file ${String(file['path'])}`);
    return typeof found === 'object' ? found : {};
  });
  const form = 'a map of texts, or a list of NAME=value';
  const pairs = reader.take([...path, 'environment'], service['environment'], pairsOf, form) ?? [];
  const own = pairs.flatMap(([name, value]) => {
    const text = value === null ? valueOf(name) : value;
    return text === undefined ? [] : [[name, text] as const];
  });
  const all = { ...Object.assign({}, ...ofFiles), ...Object.fromEntries(own) } as Values;
  return service['environment'] === undefined && files.length === 0 ? undefined : all;
}

/** Those that a container can't have are left out, because many are for other programs. */
function labelsOf(reader: Reader, path: Path, value: unknown): Values | undefined {
  const pairs = reader.take(path, value, pairsOf, 'a map of texts, or a list of key=value');
  const { parse, faultsOf } = fieldOf('labels');
  const labels = pairs?.flatMap(([key, given]) => {
    const label = { [key]: given === null ? '' : typeof given === 'object' ? given : String(given) };
    const why = (fault: string): undefined => void reader.warn([...path, key], `is left out: ${fault}`);
    return parse(label, why) === undefined ? [] : [label];
  });
  const all = labels && Object.assign({}, ...labels);
  const faults = all === undefined ? [] : faultsOf(all);
  for (const fault of faults) reader.fault(path, fault);
  return all;
}

function portList(reader: Reader, path: Path, value: unknown): unknown {
  const items = reader.take(path, value, listOf, 'a list');
  const chosen: string[] = [];
  const ports = items?.flatMap((item, at) => {
    const here = [...path, String(at)];
    const read = reader.take(here, item, portsOf, 'a port like 8080, 8080:80 or 53:53/udp');
    if (mapOf(item) !== undefined) reader.others(here, mapOf(item) ?? {}, keysOf.port);
    if (read?.address !== undefined)
      reader.warn(
        here,
        `the address ${read.address} is not kept: the port is published where the host publishes, for others too`,
      );
    if (read?.published !== undefined) chosen.push(read.published);
    return read?.ports ?? [];
  });
  if (chosen.length > 0)
    reader.warn(path, `the host's ports are not kept (${chosen.join(', ')}): Longshore chooses them`);
  // One that is published twice on the host is one port of the container.
  return ports && [...new Map(ports.map((port) => [String(port).replace(/\/tcp$/, ''), port])).values()];
}

/** `deploy` wins over `cpus` and `mem_limit`; what else it has is refused or left out. */
function limitsOf(reader: Reader, path: Path, service: Values) {
  const at = [...path, 'deploy'];
  const deploy = reader.take(at, service['deploy'], mapOf, 'a map') ?? {};
  reader.others(at, deploy, keysOf.deploy);
  const one = (value: unknown): unknown => (countOf(value) === 1 ? null : value);
  if (deploy['replicas'] !== undefined) reader.lacks([...at, 'replicas'], one(deploy['replicas']));
  if (service['scale'] !== undefined) reader.lacks([...path, 'scale'], one(service['scale']));
  reader.lacks([...at, 'mode'], deploy['mode'] === 'replicated' ? null : deploy['mode']);
  const resources = reader.take([...at, 'resources'], deploy['resources'], mapOf, 'a map') ?? {};
  reader.others([...at, 'resources'], resources, keysOf.resources);
  const reserved = [...at, 'resources', 'reservations'];
  reader.others(reserved, reader.take(reserved, resources['reservations'], mapOf, 'a map') ?? {}, keysOf.reservations);
  const below = [...at, 'resources', 'limits'];
  const bounds = reader.take(below, resources['limits'], mapOf, 'a map') ?? {};
  reader.others(below, bounds, keysOf.limits);
  const first = (
    places: readonly (readonly [Path, unknown])[],
    read: (value: unknown) => string | undefined,
    form: string,
  ) => {
    const [place, value] = places.find(([, given]) => given !== undefined && given !== null) ?? [path, undefined];
    const text = reader.take(place, value, read, form);
    return isZero(text) ? undefined : text;
  };
  return {
    cpus: first(
      [
        [[...below, 'cpus'], bounds['cpus']],
        [[...path, 'cpus'], service['cpus']],
      ],
      cpusText,
      'a number of CPUs, like 0.5',
    ),
    memory: first(
      [
        [[...below, 'memory'], bounds['memory']],
        [[...path, 'mem_limit'], service['mem_limit']],
      ],
      memoryText,
      'a size, like 256m',
    ),
  };
}

const secretsFolder = '/run/secrets/';
/** As Compose mounts them. */
const secretMode = 0o444;

function usesOf(reader: Reader, path: Path, value: unknown, names: ReadonlyMap<string, string>): Values | undefined {
  const items = reader.take(path, value, listOf, 'a list');
  if (items === undefined) return undefined;
  const files = items.flatMap((item, at) => {
    const here = [...path, String(at)];
    const use = typeof item === 'string' ? { source: item } : reader.take(here, item, mapOf, 'a name, or a map');
    if (use === undefined) return [];
    reader.others(here, use, keysOf.secretUse);
    const source = textIn(use['source']) ?? '';
    const target = textIn(use['target']) ?? source;
    const id = (key: string): number | undefined => (use[key] === undefined ? undefined : Number(use[key]));
    const secret = names.get(source);
    if (secret === undefined) {
      reader.fault(here, `"${source}" is not a secret of this file: declare it under "secrets"`);
      return [];
    }
    const file = { secret, mode: modeOf(use['mode']), uid: id('uid'), gid: id('gid') };
    return [[target.startsWith('/') ? target : `${secretsFolder}${target}`, withoutAbsent(file)] as const];
  });
  return { files: Object.fromEntries(files) };
}

/** `"0440"` in quotes is octal too. */
const modeOf = (value: unknown): unknown =>
  typeof value === 'string' && /^0?[0-7]{3}$/.test(value) ? Number.parseInt(value, 8) : (value ?? secretMode);

interface Secrets {
  readonly declared: Values | undefined;
  /** By the key in the file. */
  readonly names: ReadonlyMap<string, string>;
  /** By the name on the server. */
  readonly keys: ReadonlyMap<string, string>;
}

/** `<project>-<key>`, as containers are called; an external one has the name that it has. */
function secretsOf(reader: Reader, value: unknown, project: string): Secrets {
  const all = reader.take(['secrets'], value, mapOf, 'a map');
  const names = new Map<string, string>();
  const entries = Object.entries(all ?? {}).flatMap(([key, given]) => {
    const path = ['secrets', key];
    const secret = reader.take(path, given, mapOf, 'a map') ?? {};
    reader.others(path, secret, keysOf.secret);
    const isExternal = secret['external'] === true;
    const name = textIn(secret['name']) ?? (isExternal ? key : `${project}-${key}`);
    names.set(key, name);
    // It is on the server already, or the plan says that it is not.
    if (isExternal) return [];
    const from = withoutAbsent({ file: secret['file'], env: secret['environment'] });
    return [[name, { value_from: from }] as const];
  });
  const keys = new Map([...names].map(([key, name]) => [name, key]));
  return { declared: all && Object.fromEntries(entries), names, keys };
}

/** Where a Compose file has what a container has under another name. */
const fields: { readonly [F in EntryName]?: Path } = {
  env: ['environment'],
  cpu_limit: ['deploy', 'resources', 'limits', 'cpus'],
  mem_limit: ['deploy', 'resources', 'limits', 'memory'],
};
const policyFields: Readonly<Record<string, Path>> = {
  health: ['healthcheck'],
  stop_grace_seconds: ['stop_grace_period'],
};

const originIn =
  (services: ReadonlyMap<string, string>, secrets: ReadonlyMap<string, string>) =>
  ([kind, name, field, below, ...rest]: Path): Path => {
    if (kind === 'secrets' && name !== undefined) return ['secrets', secrets.get(name) ?? name];
    if (kind !== 'containers' || name === undefined) return [kind, name].filter((part) => part !== undefined);
    const service = ['services', services.get(name) ?? name];
    if (field === undefined) return service;
    if (field === 'policy') return [...service, ...(policyFields[below ?? ''] ?? [below ?? '']), ...rest];
    if (field === 'secrets') return [...service, 'secrets'];
    return [...service, ...(fields[field as EntryName] ?? [field]), ...(below === undefined ? [] : [below])];
  };
