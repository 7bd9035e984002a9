/** Checks that a WebSocket handshake fits its route. Pure. */
import type { SessionProtocol } from '../../schemas/api/sessions/control.ts';
import type { Handshake } from '../http/engine/sockets/handshake.ts';
import { failure, type Result } from '../http/respond.ts';

const version = '13';

/** Returns `undefined` if it fits, otherwise the refusal. */
export function judgeHandshake(handshake: Handshake | undefined, protocol: SessionProtocol): Result | undefined {
  if (handshake?.version !== version) {
    return {
      ...failure('upgrade_required', `ask for a WebSocket of version ${version} with the subprotocol ${protocol}`),
      // RFC 9110 section 15.5.22, RFC 6455 section 4.4.
      headers: ['upgrade', 'websocket', 'sec-websocket-version', version],
    };
  }
  if (handshake.protocols.includes(protocol)) return undefined;
  return failure('bad_request', `offer the subprotocol ${protocol} (Sec-WebSocket-Protocol)`);
}
