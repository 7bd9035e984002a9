/**
 * Decides whether a host may have a value of a tenant: only its enrolled agent may, and only the
 * values of containers that it runs, prepares or is about to stop, and the keys of the VPN networks
 * that it serves (ADR 37, invariant A7). Pure.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { registryName } from '../../../schemas/api/registry.ts';
import { usesIn } from '../../../schemas/api/secret.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { otherHostsOf } from '../container/moving.ts';
import { previousOf } from '../container/updates.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { answer, data, refuse, type Turn, type TurnContext } from '../turn.ts';

type Unseal = Extract<Ask, { type: 'secret.unseal' }>;

export function unseal(state: PartitionView, ask: Unseal, context: TurnContext): Turn {
  const { host, user } = ask.by;
  const refusal = refusalOfHost(host, user, context);
  if (refusal !== undefined) return refusal;
  const tenant = state.tenant(ask.tenant);
  if (tenant.damaged.has(ask.container)) return refuse('internal', 'the record of this container is damaged');
  const record = tenant.containers.get(ask.container);
  if (record === undefined || !isOn(record, host)) return refuse('forbidden', 'this host has no such container');
  if (ask.secret !== undefined) return secretFor(tenant, record, ask.secret);
  return ask.registry === undefined ? refuse('forbidden') : loginFor(tenant, record, ask.registry);
}

/** The preshared key and the certificate of a peer, for the host that serves its network. */
export function unsealPeer(
  state: PartitionView,
  ask: Extract<Ask, { type: 'peer.unseal' }>,
  context: TurnContext,
): Turn {
  const { host, user } = ask.by;
  const refusal = refusalOfHost(host, user, context);
  if (refusal !== undefined) return refusal;
  const { records, damaged } = state.tenant(ask.tenant).peers;
  if (damaged.has(ask.peer)) return refuse('internal', 'the record of this peer is damaged');
  const record = records.get(ask.peer);
  if (record === undefined || context.fleet.server(record.network)?.host !== host)
    return refuse('forbidden', 'this host does not serve the network of such a peer');
  const { wireguard, localId: id, certificate } = record;
  const ike = { id, certificate: certificate.pem, serial: certificate.serial };
  return answer(data('ok', { sealed: wireguard.presharedKey, ike }));
}

/** The private keys and the certificate of a network, for the host that serves it. */
export function unsealNetwork(
  state: PartitionView,
  ask: Extract<Ask, { type: 'network.unseal' }>,
  context: TurnContext,
): Turn {
  const { host, user } = ask.by;
  const refusal = refusalOfHost(host, user, context);
  if (refusal !== undefined) return refusal;
  const { record, isDamaged } = state.vpn.network(ask.network);
  if (isDamaged) return refuse('internal', 'the record of this network is damaged');
  if (record?.host !== host) return refuse('forbidden', 'this host does not serve such a network');
  const { wireguard, settings, server } = record;
  const ike = { id: settings.endpoint, certificate: server.pem, serial: server.serial, sealed: server.privateKey };
  return answer(data('ok', { sealed: wireguard.privateKey, ike }));
}

/** Checks the host in the directory, as for a sync of a host that another owner has. */
export function refusalOfHost(host: HostKey, user: string, { fleet }: TurnContext): Turn | undefined {
  const condition = fleet.condition(host);
  if (condition === 'fenced' || condition === 'removed') return refuse('forbidden', 'this host was removed');
  const enrolled = fleet.enrolledKey(host);
  if (enrolled === undefined) return refuse('unavailable', 'the key of this host is not known yet');
  return enrolled === user ? undefined : refuse('forbidden', 'this key is not enrolled for this host');
}

export const isOn = (record: ContainerRecord, host: HostKey): boolean =>
  (record.placement.phase === 'placed' && record.placement.host === host) || otherHostsOf(record).includes(host);

/** The versions of the secret that a container is made from, or may go back to. */
function* versionsIn({ secrets, update }: ContainerRecord, name: string): Generator<number, void, void> {
  for (const uses of [secrets, update?.previous?.secrets]) {
    if (uses === undefined) continue;
    for (const use of usesIn(uses)) if (use.name === name) yield use.version;
  }
}

function secretFor(
  tenant: TenantView,
  record: ContainerRecord,
  { name, version }: NonNullable<Unseal['secret']>,
): Turn {
  if (![...versionsIn(record, name)].includes(version))
    return refuse('forbidden', 'this container does not use this version of the secret');
  const value = tenant.secrets.values.get(name)?.get(version);
  if (value === undefined) return refuse('not_found', 'there is no such version of the secret any more');
  return value === null
    ? refuse('internal', 'the stored value is damaged: put it again')
    : answer(data('ok', { version, sealed: value.sealed }));
}

function loginFor(tenant: TenantView, record: ContainerRecord, registry: string): Turn {
  const name = registryName(registry);
  const pulls = [record.spec, previousOf(record)?.spec].some(
    (spec) => spec !== undefined && registryName(spec.registry) === name,
  );
  if (!pulls) return refuse('forbidden', 'this container does not come from this registry');
  const login = tenant.secrets.logins.get(name);
  if (login === undefined) return answer(data('ok', null));
  if (login === null) return refuse('internal', 'the stored login is damaged: put it again');
  const { version, username, sealed } = login;
  return answer(data('ok', { version, username, sealed }));
}
