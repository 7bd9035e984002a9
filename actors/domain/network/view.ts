/** A network as it is shown. Pure. */
import { timestamp } from '../../../lib/time/timestamp.ts';
import { lastIndex, parseCidr, serverIndex } from '../../../schemas/cidr.ts';
import { leadsOut, type KeptCertificate, type NetworkRecord, type NetworkView } from '../../../schemas/api/network.ts';
import type { NetworkServer } from '../../../schemas/wire/network-server.ts';

/** Highest allocated index. */
export function lastOf({ name, settings }: NetworkRecord): number {
  const pool = parseCidr(settings.ipv4_pool);
  if (pool?.family !== 4) throw new Error(`the pool of network ${name} is no IPv4 network`);
  return lastIndex(pool);
}

const certificateView = ({ serial, notBeforeMs, notAfterMs }: KeptCertificate) => ({
  serial,
  not_before: timestamp(notBeforeMs),
  not_after: timestamp(notAfterMs),
});

export const networkView = (record: NetworkRecord, allocated: number): NetworkView => ({
  name: record.name,
  ...record.settings,
  search_domains: record.settings.search_domains ?? [],
  wireguard_public_key: record.wireguard.publicKey,
  tenant_network: record.settings.tenant_network !== false,
  servers: record.host === undefined ? [] : [record.host],
  name_constraints: record.nameConstraints === true,
  ca_certificate: certificateView(record.ca),
  server_certificate: certificateView(record.server),
  addresses: { total: lastOf(record) - serverIndex, allocated },
  inserted_at: timestamp(record.insertedAtMs),
  updated_at: timestamp(record.updatedAtMs),
});

/** The part of it that other partitions need; `undefined` if no host serves it. */
export function serverOf({ name, host, settings, wireguard, server }: NetworkRecord): NetworkServer | undefined {
  if (host === undefined) return undefined;
  const { wireguard_port: port, mtu, ipv4_pool, ipv6_pool, tenants, routes } = settings;
  const { publicKey: key } = wireguard;
  const internet = leadsOut(routes) ? { internet: true } : {};
  const { serial: certificate } = server;
  return { network: name, host, key, port, mtu, ipv4_pool, ipv6_pool, ...internet, tenants, certificate };
}
