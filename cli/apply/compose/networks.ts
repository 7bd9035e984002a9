/**
 * Networks of a Compose file. All containers of a tenant are in one network, which no file can
 * choose: each has the names of all networks of its service, and services reach each other that
 * share none. Pure.
 */
import type { Values } from '../../../lib/values.ts';
import { labelOf } from '../../../schemas/tenant-network.ts';
import type { Path } from '../file/tree.ts';
import { keysOf } from './keys.ts';
import type { Reader } from './reader.ts';
import { listOf, mapOf } from './values.ts';

/** The network of a service that names none. */
const usual = 'default';

export interface ServiceNetworks {
  /** Its networks in Compose. */
  readonly names: readonly string[];
  readonly aliases: readonly string[] | undefined;
  /** `undefined` for the network of the tenant. */
  readonly network: Values | undefined;
}

/**
 * @param called name of its container
 * @param linked names that links of other services give it
 */
export function networksOf(
  reader: Reader,
  path: Path,
  service: Values,
  { called, linked }: { readonly called: string; readonly linked: readonly string[] },
): ServiceNetworks {
  const mode = modeOf(reader, [...path, 'network_mode'], service['network_mode']);
  if (mode === 'none') return { names: [], aliases: undefined, network: { mode } };
  const at = [...path, 'networks'];
  const given = service['networks'];
  const networks = Array.isArray(given) ? undefined : (reader.take(at, given, mapOf, 'a map or a list') ?? {});
  const names = Array.isArray(given) ? given.map(String) : Object.keys(networks ?? {});
  const aliases = Object.entries(networks ?? {}).flatMap(([name, value]) => {
    const here = [...at, name];
    const network = reader.take(here, value, mapOf, 'a map') ?? {};
    reader.others(here, network, keysOf.serviceNetwork);
    return aliasesIn(reader, [...here, 'aliases'], network['aliases']);
  });
  const all = [...new Set([...ownAlias(reader, path, called), ...aliases, ...linked])];
  return {
    names: names.length === 0 ? [usual] : names,
    aliases: all.length === 0 ? undefined : all,
    network: undefined,
  };
}

/**
 * The names that `links` give to services, by service. In Compose such a name is for the service
 * that has the link; here all services find it, so it leads to one service alone.
 */
export function linkAliases(reader: Reader, services: Values): ReadonlyMap<string, readonly string[]> {
  const owners = new Map(Object.keys(services).flatMap((name) => [[labelOf(name) ?? name, name] as const]));
  const aliases = new Map<string, string[]>();
  for (const [name, service] of Object.entries(services)) {
    const path = ['services', name, 'links'];
    const links = reader.take(path, mapOf(service)?.['links'], listOf, 'a list of services, like db or db:database');
    for (const [at, link] of (links ?? []).entries()) {
      const [on = '', alias = on] = String(link).split(':');
      const label = labelOf(alias);
      const owner = label === undefined ? undefined : owners.get(label);
      if (owner === on || (alias === on && Object.hasOwn(services, on))) continue;
      const fault = !Object.hasOwn(services, on)
        ? `names "${on}", which is no service`
        : label === undefined
          ? `DNS knows no such name as "${alias}": choose another one`
          : owner === undefined
            ? undefined
            : `"${alias}" leads to ${owner} already, for all services of the file: choose another name`;
      if (fault !== undefined) {
        if (!reader.isIgnored(path)) reader.fault([...path, String(at)], fault);
        continue;
      }
      owners.set(label ?? '', on);
      aliases.set(on, [...(aliases.get(on) ?? []), label ?? '']);
    }
  }
  return aliases;
}

function aliasesIn(reader: Reader, path: Path, value: unknown): string[] {
  const given = reader.take(path, value, listOf, 'a list')?.map(String) ?? [];
  return given.flatMap((alias, at) => {
    const label = labelOf(alias);
    if (label !== undefined) return [label];
    const why = `"${alias}" is no DNS label, and other services would not find it by that name`;
    if (!reader.isIgnored(path))
      reader.fault([...path, String(at)], `${why}: take it out, or leave it out with "--ignore aliases"`);
    return [];
  });
}

/** In Compose, services find each other by their own names, whatever containers are called. */
function ownAlias(reader: Reader, path: Path, called: string): readonly string[] {
  const service = path.at(-1) ?? '';
  const label = labelOf(service);
  if (label === undefined)
    reader.warn(path, `DNS knows no such name as "${service}": other services find it by an alias alone`);
  return label === undefined || label === called ? [] : [label];
}

function modeOf(reader: Reader, path: Path, value: unknown): 'none' | undefined {
  if (String(value) === 'none') {
    reader.warn(
      path,
      'keeps it out of the network of its tenant alone: it still reaches the world, where its host may',
    );
    return 'none';
  }
  reader.lacks(path, ['bridge', 'default'].includes(String(value)) ? null : value);
  return undefined;
}

/**
 * Reports what Longshore can't do of the networks that services use, and undeclared networks.
 * @param declared `networks` at the top of the file
 * @param services names of the networks of each service
 */
export function noteNetworks(
  reader: Reader,
  declared: unknown,
  services: ReadonlyMap<string, readonly string[]>,
): void {
  const networks = reader.take(['networks'], declared, mapOf, 'a map of networks') ?? {};
  const used = new Set([...services.values()].flat());
  for (const [name, value] of Object.entries(networks)) {
    if (!used.has(name)) continue;
    const here = ['networks', name];
    const network = reader.take(here, value, mapOf, 'a map') ?? {};
    reader.others(here, network, keysOf.network);
    const { driver } = network;
    // Containers of all hosts are in the network, as with `overlay`.
    const isUsual = ['bridge', 'default', 'overlay'].includes(String(driver));
    reader.lacks([...here, 'driver'], isUsual ? null : driver);
    for (const key of ['external', 'internal']) reader.lacks([...here, key], network[key]);
  }
  for (const [service, names] of services) {
    const unknown = names.find((name) => name !== usual && !Object.hasOwn(networks, name));
    if (unknown === undefined) continue;
    const path = ['services', service, 'networks'];
    reader.fault(path, `names "${unknown}", which is no network of the file: declare it under "networks"`, 'key');
  }
  noteStrangers(reader, services);
}

/** Reports once all services that could not reach each other in Compose. */
function noteStrangers(reader: Reader, services: ReadonlyMap<string, readonly string[]>): void {
  const joined = [...services].filter(([, names]) => names.length > 0);
  const strangers = joined.filter(([one, names]) =>
    joined.some(([other, theirs]) => one !== other && !theirs.some((name) => names.includes(name))),
  );
  if (strangers.length === 0) return;
  const list = strangers.map(([service, names]) => `${service} (${names.join(', ')})`).join(', ');
  reader.warnings.push({
    path: ['networks'],
    message: `containers of a tenant are in one network: these services reach each other, also those that share no network in Compose: ${list}`,
    isOfFile: true,
    at: 'key',
  });
}
