/**
 * Turns the body that creates or changes a network into its settings, or into all of its faults.
 */
import { contains, hostCidr, isResolver, loopOf, overlap, parseCidr, type Cidr } from '../../schemas/cidr.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import type { NetworkName } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import {
  NetworkBody,
  NetworkCreateBody,
  NetworkSettings,
  NetworkView,
  poolsOf,
  Proxy,
} from '../../schemas/api/network.ts';
import { forms } from '../../lib/validation/words.ts';
import { isValues } from '../../lib/values.ts';
import type { Validated } from './faults.ts';
import { bodyValidator, defaultOf } from './schema.ts';
import {
  checkDns,
  checkNames,
  checkRoutes,
  examine,
  normalAddress,
  normalCidr,
  isIpv4,
  normalised,
  type Report,
} from './vpn-lists.ts';
import { dnsName, hostOf } from '../../schemas/host-name.ts';
import { isInterfaceOfOthers, isWordOfCommands } from '../../schemas/interface-name.ts';

/** `tenants` is `undefined` if the body does not have the field. */
export type AskedSettings = Omit<NetworkSettings, 'tenants'> & Partial<Pick<NetworkSettings, 'tenants'>>;

export interface NetworkToMake {
  readonly name: NetworkName;
  readonly settings: AskedSettings;
  readonly nameConstraints: boolean;
}

const validateCreateSchema = bodyValidator(NetworkCreateBody);
const validatePutSchema = bodyValidator(NetworkBody);

const ofNetwork = NetworkSettings.properties;
const defaults = {
  wireguard_port: defaultOf(ofNetwork.wireguard_port),
  routes: defaultOf(ofNetwork.routes),
  dns: defaultOf(ofNetwork.dns),
  name_constraints: defaultOf(NetworkView.properties.name_constraints),
};
const proxyDefaults = {
  type: defaultOf(Proxy.properties.type),
  domains: defaultOf(Proxy.properties.domains),
  exclude: defaultOf(Proxy.properties.exclude),
  direct_fallback: defaultOf(Proxy.properties.direct_fallback),
};

const reserved = 'must not overlap reserved addresses (loopback, link-local, multicast)';
/** RFC 6890: "this network", loopback, and every address from multicast upwards. */
const reserved4 = ['0.0.0.0/8', '127.0.0.0/8', '224.0.0.0/3'];
/** Loopback and its neighbours, IPv4 addresses in IPv6, link-local, multicast. */
const reserved6 = ['::/8', 'fe80::/10', 'ff00::/8'];
const cidrs = (texts: readonly string[]): Cidr[] => texts.map(parseCidr).filter((cidr) => cidr !== undefined);
const reservedCidrs: readonly Cidr[] = cidrs([...reserved4, ...reserved6]);

const isAllocatable = (pool: Cidr): boolean => !reservedCidrs.some((taken) => overlap(taken, pool));

function checkIpv4Pool(value: unknown, report: Report): void {
  if (typeof value !== 'string') return;
  const pool = parseCidr(value);
  const { ipv4PoolPrefixMin: least, ipv4PoolPrefixMax: most } = limits;
  if (pool?.family !== 4) report('ipv4_pool', 'must be an IPv4 network, like 10.86.0.0/24');
  else if (pool.prefix < least || pool.prefix > most)
    report('ipv4_pool', `must have a prefix from /${least} to /${most}`);
  else if (!isAllocatable(pool)) report('ipv4_pool', reserved);
}

/**
 * One index gives both of a peer's addresses, so the IPv6 pool must have at least as many addresses
 * as the IPv4 pool.
 */
function checkIpv6Pool(value: unknown, ipv4Pool: unknown, report: Report): void {
  if (typeof value !== 'string') return;
  const pool = parseCidr(value);
  const ipv4 = typeof ipv4Pool === 'string' ? parseCidr(ipv4Pool) : undefined;
  const most = 96 + (ipv4?.family === 4 ? ipv4.prefix : limits.ipv4PoolPrefixMax);
  if (pool?.family !== 6) report('ipv6_pool', 'must be an IPv6 network, like fd00:86::/64');
  else if (pool.prefix < limits.ipv6PoolPrefixMin || pool.prefix > most) {
    report('ipv6_pool', `must have a prefix from /${limits.ipv6PoolPrefixMin} to /${most}`);
  } else if (!isAllocatable(pool)) report('ipv6_pool', reserved);
}

function checkProxy(value: unknown, report: Report): void {
  if (!isValues(value)) return;
  if (typeof value['host'] === 'string' && hostOf(value['host']) === undefined) report('proxy.host', forms.host);
  for (const field of ['domains', 'exclude']) checkNames(`proxy.${field}`, value[field], dnsName, report);
}

const isFilled = (list: unknown): boolean => Array.isArray(list) && list.length > 0;

function check(fields: Readonly<Record<string, unknown>>, report: Report): void {
  const { endpoint } = fields;
  if (typeof endpoint === 'string' && hostOf(endpoint) === undefined) report('endpoint', forms.host);
  checkIpv4Pool(fields['ipv4_pool'], report);
  checkIpv6Pool(fields['ipv6_pool'], fields['ipv4_pool'], report);
  checkRoutes(fields['routes'], report);
  checkDns(fields['dns'], report);
  checkNames('search_domains', fields['search_domains'], dnsName, report);
  if (isFilled(fields['search_domains']) && !isFilled(fields['dns']))
    report('search_domains', 'need resolvers: give their addresses in `dns`');
  checkProxy(fields['proxy'], report);
}

/** The VPN server has an interface of this name, and its rules are about that interface. */
function checkName({ name }: Readonly<Record<string, unknown>>, report: Report): void {
  if (typeof name !== 'string') return;
  if (isInterfaceOfOthers(name))
    report('name', 'is the name of another interface on many machines; choose one like "office"');
  else if (isWordOfCommands(name))
    report('name', 'is a word of the commands that make the interface; choose one like "office"');
}

function proxyOf(proxy: NonNullable<NetworkBody['proxy']>): Proxy {
  return {
    type: proxy.type ?? proxyDefaults.type,
    host: hostOf(proxy.host) ?? proxy.host,
    port: proxy.port,
    domains: normalised(proxy.domains ?? proxyDefaults.domains, dnsName),
    exclude: normalised(proxy.exclude ?? proxyDefaults.exclude, dnsName),
    direct_fallback: proxy.direct_fallback ?? proxyDefaults.direct_fallback,
  };
}

/** The settings in a body without faults. */
function settingsOf(body: NetworkBody): AskedSettings {
  return {
    endpoint: hostOf(body.endpoint) ?? body.endpoint,
    wireguard_port: body.wireguard_port ?? defaults.wireguard_port,
    ipv4_pool: normalCidr(body.ipv4_pool) ?? body.ipv4_pool,
    ipv6_pool: body.ipv6_pool == null ? null : (normalCidr(body.ipv6_pool) ?? body.ipv6_pool),
    routes: normalised(body.routes ?? defaults.routes, normalCidr),
    dns: normalised(body.dns ?? defaults.dns, normalAddress),
    ...(isFilled(body.search_domains) ? { search_domains: normalised(body.search_domains ?? [], dnsName) } : {}),
    mtu: body.mtu ?? null,
    proxy: body.proxy == null ? null : proxyOf(body.proxy),
    ...(body.tenant_network === false ? { tenant_network: false } : {}),
    ...(body.tenants === undefined ? {} : { tenants: body.tenants }),
  };
}

const linkLocal4 = cidrs(['169.254.0.0/16']);

type Pools = Pick<NetworkSettings, 'ipv4_pool' | 'ipv6_pool'>;

/** Another network of the cluster. */
export type OtherNetwork = Pools & Pick<NetworkView, 'name' | 'endpoint' | 'wireguard_port'>;

/**
 * Faults that a network of an older release may have, and keeps: only what `before` does not have
 * is refused. `before` is `undefined` if the network is new.
 * @param others networks whose rules and interfaces its own may meet, on one VPN server
 */
export function newFaults(
  settings: AskedSettings,
  before?: NetworkSettings,
  others: readonly OtherNetwork[] = [],
): FieldErrors {
  const faults: FieldErrors = {};
  const { endpoint, wireguard_port: port, routes, dns } = settings;
  const moved = endpoint !== before?.endpoint;
  const pools = cidrs(poolsOf(settings));
  for (const [index, address] of dns.entries()) {
    if (before?.dns.includes(address) !== true && !isResolver(address)) faults[`dns.${index}`] = [forms.resolver];
  }
  if (settings.ipv6_pool === null && routes.join() !== before?.routes.join() && !routes.some(isIpv4))
    faults['routes'] = [forms.routesOfPeers];
  const loop = loopOf(endpoint, routes);
  if (loop !== undefined && (moved || !before.routes.includes(loop))) faults['routes'] ??= [forms.loop(loop, endpoint)];
  if (before === undefined && pools.some((pool) => linkLocal4.some((taken) => overlap(taken, pool))))
    faults['ipv4_pool'] = [reserved];
  const host = hostCidr(endpoint);
  if (moved && host !== undefined && pools.some((pool) => contains(pool, host)))
    faults['endpoint'] = ['is an address of the pools; give one that devices reach without the tunnel'];
  for (const other of others.filter((one) => one.endpoint === endpoint)) {
    if (other.wireguard_port === port && (moved || port !== before.wireguard_port))
      faults['wireguard_port'] ??= [`is that of network ${other.name}, which has the same endpoint; choose another`];
    if (!moved) continue;
    const met = cidrs(poolsOf(other)).find((taken) => pools.some((pool) => overlap(taken, pool)));
    if (met === undefined) continue;
    const field = before !== undefined ? 'endpoint' : met.family === 4 ? 'ipv4_pool' : 'ipv6_pool';
    faults[field] ??= [
      before !== undefined
        ? `is that of network ${other.name}, whose pools overlap`
        : `overlaps that of network ${other.name}, which has the same endpoint`,
    ];
  }
  return faults;
}

export function validateNetworkCreate(body: unknown): Validated<NetworkToMake> {
  const valid = validateCreateSchema(body);
  const faults = examine(valid, body, (fields, report) => {
    checkName(fields, report);
    check(fields, report);
  });
  if (!valid.ok || Object.keys(faults).length > 0) return { ok: false, faults };
  const { name, name_constraints: asked, ...settings } = valid.value;
  const made = settingsOf(settings);
  const later = newFaults(made);
  if (Object.keys(later).length > 0) return { ok: false, faults: later };
  return { ok: true, value: { name, settings: made, nameConstraints: asked ?? defaults.name_constraints } };
}

export function validateNetworkPut(body: unknown): Validated<AskedSettings> {
  const valid = validatePutSchema(body);
  const faults = examine(valid, body, check);
  return valid.ok && Object.keys(faults).length === 0
    ? { ok: true, value: settingsOf(valid.value) }
    : { ok: false, faults };
}
