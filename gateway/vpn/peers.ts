/** A tenant's VPN peers: make, list, change, rotate, remove; their tokens and passwords. */
import { timestamp } from '../../lib/time/clock.ts';
import { decodeCursor } from '../../schemas/api/cursor.ts';
import type { PeerUpdate } from '../../schemas/wire/asks.ts';
import type { PeerTokenId } from '../../schemas/ids.ts';
import type { PeerTokenView } from '../../schemas/api/peer.ts';
import { peerOf, succeeded, tenantOf, type Handler } from '../http/call.ts';
import type { Forage } from './vpn.ts';
import { keyringOf } from './service/keyring.ts';
import type { NewPeer } from './service/peers/peers.ts';
import { refusing } from './service/refusal.ts';
import type { PeerTokenSettings } from '../validation/peer-token.ts';
import { newPassword } from './pki/secrets.ts';
import { wrongCursor } from '../http/pages.ts';
import { created, ok } from '../http/respond.ts';
import type { PeerSettings } from '../validation/peer.ts';

const withSecrets = ({ view, p12Password, pacToken, downloadToken }: NewPeer) => ({
  ...view,
  p12_password: p12Password,
  pac_token: pacToken,
  download_token: downloadToken,
});

export function peerHandlers({ actors, peers, keyring, log }: Forage) {
  const list: Handler = (call) => {
    const { limit, cursor } = call.query;
    const before = cursor === undefined ? null : decodeCursor(String(cursor));
    if (before === undefined) return wrongCursor;
    return actors.ask(call, { type: 'peer.list', tenant: tenantOf(call), limit: Number(limit), before });
  };

  const get: Handler = (call) => actors.ask(call, { type: 'peer.get', tenant: tenantOf(call), peer: peerOf(call) });

  const create = refusing(log, async (call) => {
    const made = await peers.create(call, tenantOf(call), call.body as PeerSettings, keyringOf(keyring));
    return created(withSecrets(made));
  });

  const update: Handler = (call) =>
    actors.askWrite(call, {
      type: 'peer.update',
      tenant: tenantOf(call),
      peer: peerOf(call),
      update: call.body as PeerUpdate,
    });

  const remove: Handler = (call) =>
    actors.askWrite(call, { type: 'peer.remove', tenant: tenantOf(call), peer: peerOf(call) });

  const rotate = refusing(log, async (call) => {
    const material = await peers.load(call, { tenant: tenantOf(call), peer: peerOf(call) });
    return ok(withSecrets(await peers.rotate(call, material, keyringOf(keyring))));
  });

  const createToken: Handler = async (call) => {
    const { scope, expiresAtMs } = call.body as PeerTokenSettings;
    const tenant = tenantOf(call);
    const { text, token } = peers.newToken(tenant, scope, expiresAtMs);
    const outcome = await actors.askWrite(call, { type: 'peer.token.create', tenant, peer: peerOf(call), token });
    if (!succeeded(outcome)) return outcome;
    const view: PeerTokenView = {
      id: token.id,
      scope,
      inserted_at: timestamp(token.insertedAtMs),
      expires_at: timestamp(token.expiresAtMs),
    };
    return created({ ...view, token: text });
  };

  const removeToken: Handler = (call) =>
    actors.askWrite(call, {
      type: 'peer.token.remove',
      tenant: tenantOf(call),
      peer: peerOf(call),
      token: call.params['token'] as PeerTokenId,
    });

  const password = refusing(log, async (call) => {
    const [tenant, peer] = [tenantOf(call), peerOf(call)];
    const text = newPassword();
    const p12Password = peers.sealPassword(tenant, peer, text, keyringOf(keyring));
    const outcome = await actors.askWrite(call, { type: 'peer.password', tenant, peer, p12Password });
    return succeeded(outcome) ? created({ p12_password: text }) : outcome;
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
