/**
 * strongSwan's configuration for the VPN networks that this host serves: a connection and pools for
 * each peer, so that each has its own address. A peer is known by the certificate that its files
 * have: whose key it holds, not who has signed it, so that a key that was replaced is nobody's at
 * once, without a revocation list. Pure.
 */
import { createHash } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { addressAt, parseCidr } from '../../schemas/cidr.ts';
import { espTexts, ikeTexts } from '../../schemas/ike-proposals.ts';
import { resolverAddresses } from '../../schemas/tenant-network.ts';
import type { DesiredNetwork } from '../../schemas/wire/net.ts';
import type { Section } from './vici/message.ts';

/** Longer than the clients' hour, because Windows behind a NAT refuses a rekeying by the server. */
const rekey = { ike: '10h', child: '2h' } as const;

/** DNS names are looked up in this domain: INTERNAL_DNS_DOMAIN (RFC 8598). */
const searchDomain = '25';

/** Names of everything that strongSwan has from a `longshore-net` begin so. */
const commonPrefix = 'longshore:';
export const namesOf = (router: string): string => `${commonPrefix}${router}:`;

/** `true` if it belongs to a `longshore-net` with another router namespace. */
export const isForeign = (name: string, router: string): boolean =>
  name.startsWith(commonPrefix) && !name.startsWith(namesOf(router));

/** A command, and the text by which it is known whether it has been given. */
export interface Loaded {
  readonly message: Section;
  readonly text: string;
}

export interface IkeWanted {
  /** By the name of each. */
  readonly keys: ReadonlyMap<string, Loaded>;
  readonly pools: ReadonlyMap<string, Loaded>;
  readonly connections: ReadonlyMap<string, Loaded>;
  /** Whose a connection is. */
  readonly owners: ReadonlyMap<string, IkeOwner>;
  /** Networks that are served by IKEv2. */
  readonly networks: readonly string[];
  /** Addresses that only this host and its router have, one in each range that devices reach. */
  readonly own: readonly string[];
}

export interface IkeOwner {
  readonly network: string;
  /** The peer's public key of WireGuard. */
  readonly key: string;
}

const loaded = (message: Section): Loaded => ({
  message,
  text: createHash('sha256').update(JSON.stringify(message)).digest('hex'),
});

export function ikeWanted({ ranges, vpn }: Pick<DesiredNetwork, 'ranges' | 'vpn'>, router: string): IkeWanted {
  const prefix = namesOf(router);
  const [keys, pools, connections] = [
    new Map<string, Loaded>(),
    new Map<string, Loaded>(),
    new Map<string, Loaded>(),
  ] as const;
  const owners = new Map<string, IkeOwner>();
  const networks: string[] = [];
  const ownAddresses = new Set<string>();
  for (const { name, server, internet, pools: own, peers } of vpn) {
    const ike = server?.ike;
    if (ike === undefined) continue;
    networks.push(name);
    keys.set(`${prefix}${name}`, loaded({ type: 'any', data: ike.private_key }));
    const hasIpv6 = own.some((pool) => pool.includes(':'));
    const inFamily = (range: string | null): range is string => range !== null && (hasIpv6 || !range.includes(':'));
    const led = internet === true ? ['0.0.0.0/0', '::/0'] : [ranges.ipv4, ranges.ipv6, ...own];
    const reached = led.filter(inFamily);
    const served = [ranges.ipv4, ranges.ipv6].filter(inFamily);
    const dns = [...resolverAddresses(served, 0), ...resolverAddresses(served, 1)];
    for (const address of [...resolverAddresses(served, 0), ...own.flatMap(serverAddressOf)]) ownAddresses.add(address);
    for (const { key, ipv4, ipv6, ike: peer } of peers) {
      if (peer === undefined) continue;
      const ownPools = [ipv4, ...(ipv6 === null ? [] : [ipv6])].map((address, at) => {
        const pool = `${prefix}${address}`;
        // Attributes come with a pool's address, so one pool of a peer has them.
        const attributes: Section = at > 0 ? {} : { dns, [searchDomain]: ['internal'] };
        pools.set(pool, loaded({ [pool]: { addrs: `${address}-${address}`, ...attributes } }));
        return pool;
      });
      // A rotated peer has another key, and so another connection: those of the old one end.
      const connection = `${prefix}${peer.id}:${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;
      for (const [suffix, id] of [
        ['', peer.id],
        // Windows identifies itself by its certificate's subject.
        [':dn', `CN=${peer.id}`],
      ] as const) {
        const message = connectionOf({ id, ike, certificate: peer.certificate, pools: ownPools, reached });
        connections.set(connection + suffix, loaded({ [connection + suffix]: message }));
        owners.set(connection + suffix, { network: name, key });
      }
    }
  }
  return { keys, pools, connections, owners, networks, own: [...ownAddresses] };
}

/** The first address of a pool is the server's. */
function serverAddressOf(pool: string): string[] {
  const range = parseCidr(pool);
  return range === undefined ? [] : [addressAt(range, 1)];
}

interface ConnectionInput {
  readonly id: string;
  readonly ike: { readonly id: string; readonly certificate: string };
  readonly certificate: string;
  readonly pools: readonly string[];
  readonly reached: readonly string[];
}

const connectionOf = ({ id, ike, certificate, pools, reached }: ConnectionInput): Section => ({
  version: '2',
  proposals: ikeTexts(',').split(','),
  unique: 'replace',
  send_cert: 'always',
  fragmentation: 'yes',
  mobike: 'yes',
  dpd_delay: '60s',
  rekey_time: rekey.ike,
  pools,
  local: { auth: 'pubkey', certs: [ike.certificate], id: ike.id },
  remote: { auth: 'pubkey', certs: [certificate], id },
  children: {
    net: {
      local_ts: reached,
      esp_proposals: espTexts(',').split(','),
      dpd_action: 'clear',
      rekey_time: rekey.child,
    },
  },
});

const Count = Type.String({ pattern: '^[0-9]{1,16}$' });
/** A security association of IKE, as the daemon lists it and tells of its end. */
export const IkeSa = Type.Object({
  uniqueid: Type.String(),
  state: Type.String(),
  'remote-host': Type.Optional(Type.String()),
  'remote-port': Type.Optional(Type.String()),
  'remote-vips': Type.Optional(Type.Array(Type.String())),
  /** Seconds since then. */
  established: Type.Optional(Count),
  'child-sas': Type.Optional(
    Type.Record(
      Type.String(),
      Type.Object({
        uniqueid: Type.String(),
        'spi-in': Type.Optional(Type.String()),
        'bytes-in': Type.Optional(Count),
        'bytes-out': Type.Optional(Count),
        /** Seconds since a packet came. */
        'use-in': Type.Optional(Count),
      }),
    ),
  ),
});
export type IkeSa = Static<typeof IkeSa>;
