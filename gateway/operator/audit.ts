/**
 * Security-relevant writes that a restore of an older backup undoes, each as one event of the log.
 * docs/backup.md, "Revocations to repeat", says how operators find and repeat them. No field
 * holds a token, a password or a key.
 */
import type { HostKey } from '../../schemas/ids.ts';
import type { EnrolBody } from '../../schemas/api/host.ts';
import type { PeerUpdate } from '../../schemas/wire/asks.ts';
import type { RouteName } from '../../schemas/routes.ts';
import type { RevocationBody, TenantBody } from '../../schemas/api/tenant.ts';
import type { Fields } from '../../lib/log.ts';
import { timestamp } from '../../lib/time/clock.ts';
import {
  hostOf,
  networkOf,
  peerOf,
  succeeded,
  tenantOf,
  tenantParameterOf,
  type Call,
  type Handled,
} from '../http/call.ts';
import { hostOfJoinToken } from './hosts.ts';

interface Kind {
  readonly event: string;
  /** Undefined if this request changes nothing about security. */
  readonly fields: (call: Call) => Fields | undefined;
}

export interface AuditEvent {
  readonly event: string;
  readonly fields: Fields;
}

const ofPeer = (call: Call): Fields => ({ tenant: tenantOf(call), peer: peerOf(call) });
const ofHost = (host: HostKey): Fields => ({ host });

/** Only what decides whether the peer may connect. */
function peerChange(call: Call): Fields | undefined {
  const { enabled, expiresAtMs } = call.body as PeerUpdate;
  if (enabled === undefined && expiresAtMs === undefined) return undefined;
  return {
    ...ofPeer(call),
    ...(enabled === undefined ? {} : { enabled }),
    ...(expiresAtMs === undefined ? {} : { expires_at: expiresAtMs === null ? null : timestamp(expiresAtMs) }),
  };
}

export const auditKinds: Readonly<Partial<Record<RouteName, Kind>>> = {
  // `match` is the body that repeats the revocation; an empty one means all tokens of the tenant.
  'tenant.revoke': {
    event: 'revoked',
    fields: (call) => ({ tenant: tenantParameterOf(call), match: call.body as RevocationBody }),
  },
  'tenant.put': {
    event: 'tenant_changed',
    fields: (call) => {
      const { repair, ...settings } = call.body as TenantBody;
      return { tenant: tenantParameterOf(call), settings, ...(repair === true ? { repair } : {}) };
    },
  },
  'host.remove': { event: 'host_removed', fields: (call) => ofHost(hostOf(call)) },
  'host.join_token': { event: 'join_token_replaced', fields: (call) => ofHost(hostOf(call)) },
  'host.enrol': {
    event: 'host_enrolled',
    fields: (call) => {
      const host = hostOfJoinToken((call.body as EnrolBody).join_token);
      return host === undefined ? undefined : ofHost(host);
    },
  },
  'peer.update': { event: 'peer_changed', fields: peerChange },
  'peer.rotate': { event: 'peer_rotated', fields: ofPeer },
  'peer.password': { event: 'peer_password_changed', fields: ofPeer },
  'peer.token.remove': {
    event: 'peer_token_removed',
    fields: (call) => ({ ...ofPeer(call), token_id: call.params['token'] }),
  },
  'peer.remove': { event: 'peer_removed', fields: ofPeer },
  'network.remove': { event: 'network_removed', fields: (call) => ({ network: networkOf(call) }) },
};

/** A write without an answer may have been executed, or may be later. */
const unknownOutcomes: ReadonlySet<string> = new Set(['internal', 'timeout', 'unavailable']);

/** The event of a handled request; undefined if a restore leaves nothing to repeat. */
export function auditOf(call: Call, handled: Handled): AuditEvent | undefined {
  const kind = auditKinds[call.route];
  if (kind === undefined || handled === 'streamed') return undefined;
  const isDone = succeeded(handled);
  if (!isDone && !unknownOutcomes.has(handled.code)) return undefined;
  const fields = kind.fields(call);
  if (fields === undefined) return undefined;
  return { event: kind.event, fields: { ...fields, outcome: isDone ? 'done' : 'unknown', requestId: call.requestId } };
}
