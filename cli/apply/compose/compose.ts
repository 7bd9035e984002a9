/**
 * Converts a Compose file into a file of `apply`. A key that changes what runs and that Longshore
 * can't do is a fault, unless its author says that it may be left out. The rules are those of the
 * Compose specification: https://github.com/compose-spec/compose-spec. Pure.
 */
import type { Values } from '../../../lib/values.ts';
import { containerDefaults, fieldOf } from '../../../schemas/api/fields/container.ts';
import { forms, patterns, projectNamed } from '../file/checks.ts';
import type { EntryName } from '../file/fields.ts';
import type { Path } from '../file/tree.ts';
import { environmentOf, type ReadEnvFile } from './environment.ts';
import { configsOf, filesOf, type ReadText } from './configs.ts';
import { keysOf, listOfKeys } from './keys.ts';
import { linkAliases, networksOf, noteNetworks } from './networks.ts';
import { inOrder } from './order.ts';
import { policyOf } from './policy.ts';
import { processOf } from './process.ts';
import { containerName } from './project.ts';
import { Reader, type ComposeRemark } from './reader.ts';
import { secretsOf, usesOf } from './secrets.ts';
import {
  countOf,
  cpusText,
  isZero,
  listOf,
  mapOf,
  memoryText,
  pairsOf,
  portsOf,
  pullPolicyOf,
  sameAmount,
  withoutAbsent,
} from './values.ts';

export interface Composed {
  /** In the form of `ApplyFile`, not validated yet. */
  readonly file: unknown;
  /** Path in the Compose file that a path of `file` comes from. */
  readonly origin: (path: Path) => Path;
  readonly warnings: readonly ComposeRemark[];
  readonly faults: readonly ComposeRemark[];
  /** Containers that are waited for to their end. */
  readonly jobs: ReadonlySet<string>;
  /** Containers whose host looks at the tag with each apply. */
  readonly pulled: ReadonlySet<string>;
}

export interface Composing {
  readonly project: string;
  /** A variable of the shell, or of `.env`. */
  readonly valueOf: (name: string) => string | undefined;
  /** Keys that may be left out. */
  readonly ignore: readonly string[];
  readonly readEnvFile: ReadEnvFile;
  readonly readText: ReadText;
}

export function composed(value: unknown, composing: Composing): Composed {
  const { project, ignore } = composing;
  const top = mapOf(value) ?? {};
  const reader = new Reader(ignore, top);
  reader.others([], top, keysOf.top);
  const services = reader.take(['services'], top['services'], mapOf, 'a map of services') ?? {};
  const secrets = secretsOf(reader, top['secrets'], project);
  const configs = configsOf(reader, top['configs'], composing);
  const names = new Map<string, string>();
  const [jobs, pulled] = [new Set<string>(), new Set<string>()];
  const containers = new Map<string, Values>();
  const ran = new Set<string>();
  const networks = new Map<string, readonly string[]>();
  const linked = linkAliases(reader, services);
  for (const name of inOrder(reader, services, composing.valueOf('COMPOSE_PROFILES') ?? '', ran)) {
    const path = ['services', name];
    const service = reader.take(path, services[name] ?? {}, mapOf, 'a map');
    if (service === undefined) continue;
    reader.enter(name, service);
    const called = containerName(project, name, service['container_name']);
    if (!patterns.containers.test(called)) {
      const why = `the name of its container, "${called}", ${forms.containers}`;
      const message = `${why}: give it a container_name, or the project a shorter name with "-p"`;
      reader.fault([...path, 'container_name'], message, 'key');
      continue;
    }
    const all = { secrets: secrets.names, configs, linked: linked.get(name) ?? [] };
    const read = serviceOf(reader, { path, called, service }, composing, all);
    if (read === undefined) continue;
    if (containers.has(called)) reader.fault(path, `"${called}" is the name of another service's container, too`);
    containers.set(called, read.container);
    names.set(called, name);
    networks.set(name, read.networks);
    if (read.isJob || ran.has(name)) jobs.add(called);
    if (read.isPulled) pulled.add(called);
  }
  noteNetworks(reader, top['networks'], networks);
  const file = withoutAbsent({
    name: projectNamed(project),
    secrets: secrets.declared,
    containers: Object.fromEntries(containers),
  });
  noteAll(reader);
  const { warnings, faults } = reader;
  return { file, origin: originIn(names, secrets.keys), warnings, faults, jobs, pulled };
}

/** Remarks about keys that are left out, one line for each kind. */
function noteAll(reader: Reader): void {
  const note = (paths: readonly Path[], message: string): void => {
    const [path] = paths;
    if (path !== undefined)
      reader.warnings.push({ path, message: `${message}: ${listOfKeys(paths)}`, isOfFile: true, at: 'key' });
  };
  note(reader.harmless, 'left out, which changes nothing that runs');
  note(reader.ignored, 'left out, as asked, although it changes what runs');
}

interface ReadService {
  readonly container: Values;
  readonly isJob: boolean;
  readonly isPulled: boolean;
  /** Names of its networks. */
  readonly networks: readonly string[];
}

interface OfFile extends Readonly<Record<'secrets' | 'configs', ReadonlyMap<string, string>>> {
  /** Names that links of other services give it. */
  readonly linked: readonly string[];
}

function serviceOf(
  reader: Reader,
  { path, called, service }: { readonly path: Path; readonly called: string; readonly service: Values },
  composing: Composing,
  { secrets, configs, linked }: OfFile,
): ReadService | undefined {
  if ([undefined, null, ''].some((nothing) => service['image'] === nothing)) {
    const isBuilt = service['build'] !== undefined;
    // A service that is built has no image of its own, so only the build is reported as a fault.
    if (isBuilt) reader.fault([...path, 'build'], 'Longshore builds no images: push an image, and name it in "image"');
    else reader.fault(path, 'has no image: name one in "image", or give the file that does with "-f", too', 'key');
    return undefined;
  }
  reader.others(path, service, keysOf.service);
  const options = service['security_opt'];
  reader.lacks([...path, 'security_opt'], listOf(options)?.filter((one) => !isUsualOption(one)) ?? options);
  const { names: networks, aliases, network } = networksOf(reader, path, service, { called, linked });
  const { cpus, memory } = limitsOf(reader, path, service);
  const { policy, isJob } = policyOf(reader, path, service);
  const container = withoutAbsent({
    image: service['image'],
    env: environmentOf(reader, path, service, composing),
    ports: portList(reader, [...path, 'ports'], service['ports']),
    cpu_limit: cpus,
    mem_limit: memory,
    aliases,
    network,
    labels: labelsOf(reader, [...path, 'labels'], service['labels']),
    process: processOf(reader, path, service, memory ?? containerDefaults.mem_limit),
    policy: withoutAbsent({
      ...policy,
      ...(mapOf(policy['health']) === undefined ? {} : { health: withoutAbsent(mapOf(policy['health']) ?? {}) }),
    }),
    files: filesOf(reader, [...path, 'configs'], service['configs'], configs),
    secrets: usesOf(reader, [...path, 'secrets'], service['secrets'], secrets),
  });
  return { container, isJob, isPulled: looksAtTag(reader, [...path, 'pull_policy'], service['pull_policy']), networks };
}

/** No container gets new privileges, whatever its file says. */
const isUsualOption = (option: unknown): boolean => /^no-new-privileges(?:[:=]true)?$/.test(String(option));

const unpulled: Readonly<Record<string, string>> = {
  never: 'hosts pull an image that they do not have, and no file can keep them from it',
  build: 'Longshore builds no images: push one',
};

/** True if the pull policy makes the host look at the tag with each apply. */
function looksAtTag(reader: Reader, path: Path, value: unknown): boolean {
  const form = 'always, missing, daily, weekly or every_ and a time, such as every_12h';
  const policy = reader.take(path, value === '' ? undefined : value, pullPolicyOf, form);
  const why = unpulled[policy ?? ''];
  if (why !== undefined && !reader.isIgnored(path))
    reader.fault(path, `${why}: take it out, or leave it out with "--ignore pull_policy"`, 'key');
  if (policy === 'sometimes') reader.warn(path, 'looks at the tag with each apply, as "always" does');
  return policy === 'always' || policy === 'sometimes';
}

/** Leaves out labels that a container can't have: many of them are for other programs. */
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

const isEveryAddress = (address: string): boolean => ['0.0.0.0', '::', '[::]'].includes(address);

function portList(reader: Reader, path: Path, value: unknown): unknown {
  const items = reader.take(path, value, listOf, 'a list');
  const chosen: string[] = [];
  const ports = items?.flatMap((item, at) => {
    const here = [...path, String(at)];
    const read = reader.take(here, item, portsOf, 'a port like 8080, 8080:80 or 53:53/udp');
    if (mapOf(item) !== undefined) reader.others(here, mapOf(item) ?? {}, keysOf.port);
    if (read?.address !== undefined && !isEveryAddress(read.address))
      reader.warn(
        here,
        `the address ${read.address} is not kept: the port is published where the host publishes, for others too`,
      );
    if (read?.published !== undefined) chosen.push(read.published);
    return read?.ports ?? [];
  });
  if (chosen.length > 0)
    reader.warn(path, `the host's ports are not kept (${chosen.join(', ')}): Longshore chooses them`);
  // A port that is published twice on the host is one port of the container.
  return ports && [...new Map(ports.map((port) => [String(port).replace(/\/tcp$/, ''), port])).values()];
}

/**
 * Limits of CPU and memory, from the service itself or from its `deploy`. Other keys of `deploy`
 * are refused or left out.
 */
function limitsOf(reader: Reader, path: Path, service: Values) {
  const at = [...path, 'deploy'];
  const deploy = reader.take(at, service['deploy'], mapOf, 'a map') ?? {};
  reader.others(at, deploy, keysOf.deploy);
  const several = (value: unknown): unknown => ((countOf(value) ?? 0) > 1 ? value : null);
  reader.lacks([...at, 'replicas'], several(deploy['replicas']));
  reader.lacks([...path, 'scale'], several(service['scale']));
  reader.lacks([...at, 'mode'], deploy['mode'] === 'replicated' ? null : deploy['mode']);
  const resources = reader.take([...at, 'resources'], deploy['resources'], mapOf, 'a map') ?? {};
  reader.others([...at, 'resources'], resources, keysOf.resources);
  const reserved = [...at, 'resources', 'reservations'];
  reader.others(reserved, reader.take(reserved, resources['reservations'], mapOf, 'a map') ?? {}, keysOf.reservations);
  const below = [...at, 'resources', 'limits'];
  const bounds = reader.take(below, resources['limits'], mapOf, 'a map') ?? {};
  reader.others(below, bounds, keysOf.limits);
  const limit = (key: string, ofDeploy: string, read: (value: unknown) => string | undefined, form: string) => {
    const own = reader.take([...path, key], service[key], read, form);
    const text = reader.take([...below, ofDeploy], bounds[ofDeploy], read, form);
    if (own !== undefined && text !== undefined && !sameAmount(own, text))
      reader.fault([...path, key], 'and deploy.resources.limits say two things: leave one out');
    const [place, value, found] =
      text === undefined ? [[...path, key], service[key], own] : [[...below, ofDeploy], bounds[ofDeploy], text];
    return { place, value, text: isZero(found) ? undefined : found };
  };
  const cpus = limit('cpus', 'cpus', cpusText, 'a number of CPUs, like 0.5');
  if (cpus.text !== undefined && Number(cpus.text) !== Number(cpus.value))
    reader.warn(cpus.place, `is rounded to ${cpus.text}: thousandths of a CPU are the least`);
  const memory = limit('mem_limit', 'memory', memoryText, 'a size, like 256m').text;
  // A limit equal to that of memory means no swap, as containers have it.
  const swap = memoryText(service['memswap_limit']);
  const isUsual = swap !== undefined && (isZero(swap) || (memory !== undefined && sameAmount(swap, memory)));
  reader.lacks([...path, 'memswap_limit'], isUsual ? null : service['memswap_limit']);
  return { cpus: cpus.text, memory };
}

/** Paths in a Compose file of the fields that Compose names differently. */
const fields: { readonly [F in EntryName]?: Path } = {
  env: ['environment'],
  aliases: ['networks'],
  network: ['network_mode'],
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
    if (field === 'process') return [...service, ...(below === undefined ? [] : [below]), ...rest];
    if (field === 'policy') return [...service, ...(policyFields[below ?? ''] ?? [below ?? '']), ...rest];
    if (field === 'secrets') return [...service, 'secrets'];
    return [...service, ...(fields[field as EntryName] ?? [field]), ...(below === undefined ? [] : [below])];
  };
