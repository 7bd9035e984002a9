/** A tenant's VPN peers: make, list, change, rotate, remove; their tokens and passwords. */
import { timestamp } from '../../lib/time/timestamp.ts';
import { decodeCursor } from '../../schemas/api/cursor.ts';
import type { PeerTokenView } from '../../schemas/api/peer.ts';
import { firstMissing } from '../auth/scopes.ts';
import { succeeded, tenantOf, type Call, type HandlerOf } from '../call.ts';
import type { Forage } from './vpn.ts';
import { withFilesChanged } from './service/files-changed.ts';
import { keyringOf } from './service/keyring.ts';
import { refuseUnroutable, secretFields, type NewPeer } from './service/peers/peers.ts';
import { refusing } from './service/refusal.ts';
import { newPassword } from './pki/secrets.ts';
import { wrongCursor } from '../http/pages.ts';
import { created, ok } from '../http/respond.ts';

const withSecrets = ({ view, ...shown }: NewPeer) => ({ ...view, ...secretFields(shown) });

/** From where people connect is for those who manage peers. */
const mayKnowEndpoints = ({ identity }: Call): boolean => firstMissing(identity?.scopes ?? [], ['vpn']) === undefined;

export function peerRoutes({ actors, peers, networks, keyring, log }: Forage) {
  const list: HandlerOf<'peer.list'> = async (call) => {
    const { limit, cursor } = call.query;
    const before = cursor === undefined ? null : decodeCursor(cursor);
    if (before === undefined) return wrongCursor;
    const endpoints = mayKnowEndpoints(call);
    const asked = actors.ask(call, { type: 'peer.list', tenant: tenantOf(call), limit, before, endpoints });
    return withFilesChanged(call, await asked, networks);
  };

  const get: HandlerOf<'peer.get'> = async (call) => {
    const { peer } = call.params;
    const endpoints = mayKnowEndpoints(call);
    const asked = actors.ask(call, { type: 'peer.get', tenant: tenantOf(call), peer, endpoints });
    return withFilesChanged(call, await asked, networks);
  };

  const create = refusing<'peer.create'>(log, async (call) => {
    const made = await peers.create(call, tenantOf(call), call.body, keyringOf(keyring));
    return created(withSecrets(made), made.of);
  });

  const update = refusing<'peer.update'>(log, async (call) => {
    const [tenant, peer, update] = [tenantOf(call), call.params.peer, call.body];
    // The network is read only for what it may not carry.
    if (update.routes != null) {
      const before = await peers.load(call, { tenant, peer });
      refuseUnroutable(update.routes, before.network, before.peer.routes);
    }
    return withFilesChanged(call, await actors.askWrite(call, { type: 'peer.update', tenant, peer, update }), networks);
  });

  const remove: HandlerOf<'peer.remove'> = (call) =>
    actors.askWrite(call, { type: 'peer.remove', tenant: tenantOf(call), peer: call.params.peer });

  const rotate = refusing<'peer.rotate'>(log, async (call) => {
    const material = await peers.load(call, { tenant: tenantOf(call), peer: call.params.peer });
    const made = await peers.rotate(call, material, keyringOf(keyring));
    return ok(withSecrets(made), made.of);
  });

  const createToken: HandlerOf<'peer.token.create'> = async (call) => {
    const { scope, expiresAtMs } = call.body;
    const tenant = tenantOf(call);
    const { text, token } = peers.newToken(tenant, scope, expiresAtMs);
    const view: PeerTokenView = {
      id: token.id,
      scope,
      inserted_at: timestamp(token.insertedAtMs),
      expires_at: timestamp(token.expiresAtMs),
    };
    const shown = { ...view, token: text };
    const { peer } = call.params;
    const kept = call.keep?.(`${peer}/${token.id}`, { view: null, ...shown }) ?? call;
    const outcome = await actors.askWrite(kept, { type: 'peer.token.create', tenant, peer, token });
    return succeeded(outcome) ? created(shown) : outcome;
  };

  const removeToken: HandlerOf<'peer.token.remove'> = (call) =>
    actors.askWrite(call, {
      type: 'peer.token.remove',
      tenant: tenantOf(call),
      peer: call.params.peer,
      token: call.params.token,
    });

  const password = refusing<'peer.password'>(log, async (call) => {
    const [tenant, peer] = [tenantOf(call), call.params.peer];
    const text = newPassword();
    const p12Password = peers.sealPassword(tenant, peer, text, keyringOf(keyring));
    const shown = { p12_password: text };
    const kept = call.keep?.(peer, { view: null, ...shown }) ?? call;
    const outcome = await actors.askWrite(kept, { type: 'peer.password', tenant, peer, p12Password });
    return succeeded(outcome) ? created(shown) : outcome;
  });

  return {
    'peer.list': list,
    'peer.get': get,
    'peer.create': create,
    'peer.update': update,
    'peer.remove': remove,
    'peer.rotate': rotate,
    'peer.token.create': createToken,
    'peer.token.remove': removeToken,
    'peer.password': password,
  };
}
