/** Files for the VPN server: its keys, and the peers that it admits, from the network's leases. */
import { addressAt, parseCidr } from '../../../../schemas/cidr.ts';
import type { LeaseRecord, NetworkRecord, PeerOnServer } from '../../../../schemas/api/network.ts';
import { peerStateOf } from '../../../../schemas/api/peer.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import { serverNftables, type FilteredPeer } from '../../render/wireguard/nftables.ts';
import { serverSwanctl } from '../../render/strongswan/swanctl.ts';
import { serverConf, type WireguardPeer } from '../../render/wireguard/wireguard.ts';
import type { Asker, VpnActors } from '../actors.ts';
import { networkPlace } from './authority.ts';
import type { Keyring } from '../keyring.ts';
import type { LeasePage } from '../../../../schemas/wire/answers.ts';

/** A peer that may connect now. */
interface Admitted extends PeerOnServer {
  readonly lease: LeaseRecord;
  readonly ipv4: string;
  readonly ipv6: string | null;
}

/**
 * Reads page by page, so that other work runs in between. The server does not admit disabled and
 * expired peers, nor those of a tenant that the network does not serve.
 * @throws Refusal
 */
async function* admittedPeers(
  asker: Asker,
  { name, settings }: NetworkRecord,
  actors: VpnActors,
  clock: Clock,
): AsyncGenerator<Admitted[], void, void> {
  const ipv4Pool = parseCidr(settings.ipv4_pool);
  const ipv6Pool = settings.ipv6_pool === null ? undefined : parseCidr(settings.ipv6_pool);
  const served = settings.tenants === null ? undefined : new Set(settings.tenants);
  if (ipv4Pool === undefined) throw new Error(`${name}: no IPv4 pool`);
  for (let after: number | null = 0; after !== null;) {
    const page: LeasePage = await actors.read(asker, { type: 'network.leases', network: name, after });
    const admitted: Admitted[] = [];
    for (const lease of page.data) {
      if (lease.state.phase !== 'held' || peerStateOf(lease.state, clock.nowMs()) !== 'active') continue;
      if (served?.has(lease.tenant) === false) continue;
      const ipv6 = ipv6Pool === undefined ? null : addressAt(ipv6Pool, lease.index);
      admitted.push({ ...lease.state, lease, ipv4: addressAt(ipv4Pool, lease.index), ipv6 });
    }
    yield admitted;
    after = page.next;
  }
}

export async function wireguardOfServer(
  asker: Asker,
  network: NetworkRecord,
  { vault }: Keyring,
  actors: VpnActors,
  clock: Clock,
): Promise<string> {
  const peers: WireguardPeer[] = [];
  for await (const page of admittedPeers(asker, network, actors, clock)) {
    for (const { lease, wireguardPublicKey: publicKey, presharedKey, ipv4, ipv6 } of page) {
      const { tenant, peer } = lease;
      const opened = vault.open({ of: 'peer', tenant, peer, field: 'preshared' }, presharedKey);
      peers.push({ publicKey, presharedKey: opened, ipv4, ipv6 });
    }
  }
  return serverConf(network, vault.open(networkPlace(network.name, 'wireguard'), network.wireguard.privateKey), peers);
}

export async function swanctlOfServer(
  asker: Asker,
  network: NetworkRecord,
  actors: VpnActors,
  clock: Clock,
): Promise<string> {
  const peers: Admitted[] = [];
  for await (const page of admittedPeers(asker, network, actors, clock)) peers.push(...page);
  return serverSwanctl(network, peers);
}

export async function nftablesOfServer(
  asker: Asker,
  network: NetworkRecord,
  actors: VpnActors,
  clock: Clock,
): Promise<string> {
  const peers: FilteredPeer[] = [];
  for await (const page of admittedPeers(asker, network, actors, clock)) {
    for (const { lease, ipv4, ipv6 } of page) peers.push({ tenant: lease.tenant, ipv4, ipv6 });
  }
  return serverNftables(network, peers);
}
