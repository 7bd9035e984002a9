/**
 * Security-relevant writes that a restore of an older backup undoes, each as one event of the log.
 * docs/backup.md, "Re-apply revocations", says how operators find and repeat them. No field
 * holds a token, a password or a key.
 */
import type { HostKey } from '../../schemas/ids.ts';
import type { RouteName } from '../../schemas/routes.ts';
import type { Fields } from '../../lib/log.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import { succeeded, tenantOf, type Call, type CallOf, type Handled } from '../call.ts';
import { hostOfJoinToken } from '../auth/random-tokens.ts';

interface Kind<C extends Call> {
  readonly event: string;
  /** Undefined if this request changes nothing about security. */
  readonly fields: (call: C) => Fields | undefined;
}

export interface SecurityEvent {
  readonly event: string;
  readonly fields: Fields;
}

type OfPeer =
  'peer.update' | 'peer.rotate' | 'peer.password' | 'peer.token.remove' | 'peer.link.remove' | 'peer.remove';
const ofPeer = (call: CallOf<OfPeer>): Fields => ({ tenant: tenantOf(call), peer: call.params.peer });
type OfSecret = 'secret.put' | 'secret.remove';
const ofSecret = (call: CallOf<OfSecret>): Fields => ({ tenant: tenantOf(call), secret: call.params.secret });
type OfRegistry = 'registry.put' | 'registry.remove';
const ofRegistry = (call: CallOf<OfRegistry>): Fields => ({ tenant: tenantOf(call), registry: call.params.registry });
type OfContainer =
  | 'container.rollback'
  | 'container.stop'
  | 'container.delete'
  | 'container.update'
  | 'container.secrets.put'
  | 'spec.put'
  | 'spec.patch';
const ofContainer = (call: CallOf<OfContainer>): Fields => ({ tenant: tenantOf(call), container: call.params.id });
/** As a document gives it. */
const desiredIn = (desired: unknown): Fields => (typeof desired === 'string' ? { desired } : {});
const ofHost = (host: HostKey): Fields => ({ host });

/** Only the changes that decide whether the peer may connect. */
function peerChange(call: CallOf<'peer.update'>): Fields | undefined {
  const { enabled, expiresAtMs } = call.body;
  if (enabled === undefined && expiresAtMs === undefined) return undefined;
  return {
    ...ofPeer(call),
    ...(enabled === undefined ? {} : { enabled }),
    ...(expiresAtMs === undefined ? {} : { expires_at: expiresAtMs === null ? null : timestamp(expiresAtMs) }),
  };
}

export const securityEventKinds: { readonly [R in RouteName]?: Kind<CallOf<R>> } = {
  // `match` is the body that repeats the revocation; an empty one means all tokens of the tenant.
  'tenant.revoke': {
    event: 'revoked',
    fields: (call) => ({ tenant: call.params.tenant, match: call.body }),
  },
  'tenant.put': {
    event: 'tenant_changed',
    fields: (call) => {
      const { repair, ...settings } = call.body;
      return { tenant: call.params.tenant, settings, ...(repair === true ? { repair } : {}) };
    },
  },
  'host.update': {
    event: 'host_changed',
    // The approval of orphans is about those that the operator saw.
    fields: ({ params, body: { remove_orphans: _, ...change } }) =>
      Object.keys(change).length === 0 ? undefined : { ...ofHost(params.key), change },
  },
  'host.remove': { event: 'host_removed', fields: (call) => ofHost(call.params.key) },
  'host.join_token': { event: 'join_token_replaced', fields: (call) => ofHost(call.params.key) },
  'host.enrol': {
    event: 'host_enrolled',
    fields: (call) => {
      const host = hostOfJoinToken(call.body.join_token);
      return host === undefined ? undefined : ofHost(host);
    },
  },
  'peer.update': { event: 'peer_changed', fields: peerChange },
  'peer.rotate': { event: 'peer_rotated', fields: ofPeer },
  'peer.password': { event: 'peer_password_changed', fields: ofPeer },
  'peer.token.remove': {
    event: 'peer_token_removed',
    fields: (call) => ({ ...ofPeer(call), token_id: call.params.token }),
  },
  'peer.link.remove': {
    event: 'peer_link_removed',
    fields: (call) => ({ ...ofPeer(call), link_id: call.params.link }),
  },
  'peer.remove': { event: 'peer_removed', fields: ofPeer },
  'secret.put': { event: 'secret_changed', fields: ofSecret },
  'secret.remove': { event: 'secret_removed', fields: ofSecret },
  'registry.put': { event: 'registry_changed', fields: ofRegistry },
  'registry.remove': { event: 'registry_removed', fields: ofRegistry },
  'key.remove': {
    event: 'key_removed',
    fields: (call) => ({ tenant: tenantOf(call), key: call.params.key_id }),
  },
  'signing_key.rotate': {
    event: 'signing_key_rotated',
    fields: (call) => ({ end_others: call.query.end_others }),
  },
  // Tenants that a network no longer has may make peers there again.
  'network.put': {
    event: 'network_changed',
    fields: ({ params, body }) => ({ network: params.network, tenants: body.tenants }),
  },
  // The host gets the keys of its peers.
  'network.servers.put': {
    event: 'network_served',
    fields: ({ params, body }) => ({ network: params.network, host_keys: body.host_keys }),
  },
  'network.servers.remove': { event: 'network_unserved', fields: ({ params }) => ({ network: params.network }) },
  'container.stop': { event: 'container_stopped', fields: ofContainer },
  'container.delete': { event: 'container_removed', fields: ofContainer },
  // The values may be secret.
  'container.update': {
    event: 'container_changed',
    fields: (call) => ({ ...ofContainer(call), changed: Object.keys(call.body) }),
  },
  'container.rollback': {
    event: 'container_rollback_requested',
    fields: (call) => ({ ...ofContainer(call), version: call.body.version }),
  },
  // The whole document, or a patch of it: both may stop the container, or take a secret from it.
  'spec.put': {
    event: 'container_spec_replaced',
    fields: (call) => (call.query.dry_run ? undefined : { ...ofContainer(call), ...desiredIn(call.body.desired) }),
  },
  'spec.patch': {
    event: 'container_spec_patched',
    fields: (call) =>
      call.query.dry_run
        ? undefined
        : { ...ofContainer(call), changed: Object.keys(call.body), ...desiredIn(call.body['desired']) },
  },
  'container.operate': {
    event: 'container_operated',
    fields: ({ params, body }) => ({ tenant: params.tenant, container: params.id, changed: Object.keys(body) }),
  },
  'container.secrets.put': { event: 'container_secrets_changed', fields: ofContainer },
  'network.remove': { event: 'network_removed', fields: (call) => ({ network: call.params.network }) },
};

/** Of a session, which only its handler knows (gateway/sign-in). */
export const signedOutEvent = 'signed_out';

/** A write with one of these outcomes may have been executed, or may be later. */
export const unknownOutcomes: ReadonlySet<string> = new Set(['internal', 'timeout', 'unavailable']);

/** The event of a handled request; undefined if there is nothing to repeat after a restore. */
export function securityEventOf(call: Call, handled: Handled): SecurityEvent | undefined {
  // Safe: the kind is that of the call's own route.
  const kind = securityEventKinds[call.route] as Kind<Call> | undefined;
  if (kind === undefined || handled === 'streamed') return undefined;
  const isDone = succeeded(handled);
  if (!isDone && !unknownOutcomes.has(handled.code)) return undefined;
  const fields = kind.fields(call);
  if (fields === undefined) return undefined;
  return { event: kind.event, fields: { ...fields, outcome: isDone ? 'done' : 'unknown', requestId: call.requestId } };
}
