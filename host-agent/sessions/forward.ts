/** A connection to a TCP port of a container, from the host, as for health checks. */
import { connect } from 'node:net';
import { decoder } from '../../lib/decode.ts';
import type { Tunnel, TunnelPort } from '../../lib/tunnel/tunnel.ts';
import type { Permits } from '../../lib/permits.ts';
import { ClientControl } from '../../schemas/api/sessions/control.ts';
import { endpointAt } from '../health/checks.ts';
import { wordsOf } from '../health/probe.ts';
import { Pump } from './pump.ts';
import type { SessionKind } from './sessions.ts';

/** Time in which the port of a container must open. */
const forwardConnectMs = 5000;

const decodeControl = decoder(ClientControl);
/** There is one stream each way. */
const channel = 0;

/** @param isLocal `false` if the engine is on another machine, reached by published ports alone */
export const forwardKind = (isLocal: boolean, permits: Permits): SessionKind => ({
  name: 'forward',
  permits,
  logLevel: 'info',
  isOf: ({ forward }) => forward !== undefined,
  open: (target, { forward }, tunnel) => {
    const port = forward?.port ?? 0;
    const endpoint = endpointAt(target, port, isLocal);
    return Promise.resolve(
      typeof endpoint === 'string' ? { reason: 'refused', message: endpoint } : portTo(endpoint, port, tunnel),
    );
  },
});

function portTo(endpoint: { readonly host: string; readonly port: number }, port: number, tunnel: Tunnel): TunnelPort {
  // Each side may end what it sends and go on reading.
  const stream = connect({ ...endpoint, allowHalfOpen: true });
  const timer = setTimeout(
    () => stream.destroy(new Error(`did not open in ${forwardConnectMs / 1000} s`)),
    forwardConnectMs,
  );
  stream.once('connect', () => clearTimeout(timer));
  stream.once('close', () => clearTimeout(timer));
  let isConnected = false;
  stream.once('connect', () => (isConnected = true));
  const ended = { client: false, container: false };
  const endIfBoth = (): void => {
    if (ended.client && ended.container) tunnel.end({ reason: 'done' });
  };
  const pump = new Pump({
    stream,
    tunnel,
    split: (bytes) => [{ channel, bytes }],
    onRead: () => {
      ended.container = true;
      tunnel.control({ type: 'end' });
      endIfBoth();
    },
    onClosed: () => tunnel.end({ reason: 'done' }),
    onFailed: (error) => {
      const message = `port ${port}: ${wordsOf(error)}`;
      tunnel.end({ reason: isConnected ? 'failed' : 'refused', message });
    },
  });
  return {
    onData: (_channel, bytes) => pump.write(bytes),
    onControl: (text) => {
      if (decodeControl(Buffer.from(text)).type === 'end') {
        ended.client = true;
        pump.endWrites();
        endIfBoth();
      }
      tunnel.tookControl();
    },
    onRoom: () => pump.pump(),
    onEnd: () => {
      // Bytes that were written before the end still arrive.
      if (ended.client && ended.container) stream.destroySoon();
      else pump.stop();
    },
  };
}
