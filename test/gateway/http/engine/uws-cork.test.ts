/**
 * WebSocket handshakes on uWebSockets.js, beside code that allocates memory at that moment: each
 * connection stays open (uNetworking/uWebSockets#1929).
 */
import t from 'tap';
import type { HttpEngine } from '../../../../gateway/http/engine/engine.ts';
import { loadUws, type UwsLoaded } from '../../../../gateway/http/engine/uws-binary.ts';
import type { UwsModule } from '../../../../gateway/http/engine/uws-module.ts';
import { uwsEngine } from '../../../../gateway/http/engine/uws.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { until } from '../../../support/until.ts';
import { openRaw } from '../../sockets.ts';

const handshakes = 800;
const atOnce = 16;

/** Fills the memory that a handshake gives back with what uWS takes for `Connection: close`. */
const kept: Uint8Array[] = [];
function fillMemory(): void {
  for (let count = 0; count < 12; count++) kept.push(new Uint8Array(new ArrayBuffer(72)).fill(0x10));
}

/** The module, where something allocates as soon as a WebSocket is open. */
function allocating({ uws, binary }: UwsLoaded): UwsLoaded {
  const App: UwsModule['App'] = () => {
    const app = uws.App();
    const ws = app.ws.bind(app);
    app.ws = (pattern, behavior) =>
      ws(pattern, {
        ...behavior,
        open: (socket) => {
          void behavior.open?.(socket);
          fillMemory();
        },
      });
    return app;
  };
  return { uws: { ...uws, App }, binary };
}

const handshake = (connection: string): string =>
  `GET / HTTP/1.1\r\nHost: a\r\n${connection}\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: echo\r\n\r\n';

t.test('handshakes', async (t) => {
  const loaded = loadUws();
  if (!loaded.ok) throw new Error(loaded.why);
  const engine: HttpEngine = uwsEngine(
    allocating(loaded),
    (exchange) => {
      const ignored = (): void => {};
      // Later, as after a question to others.
      setImmediate(() => {
        const { handshake: asked } = exchange;
        if (asked === undefined) {
          exchange.reply({ status: 426, headers: [], body: '' });
          return;
        }
        const socket = exchange.upgrade('echo', [], {
          onMessage: ignored,
          onPong: ignored,
          onDrain: ignored,
          onClose: ignored,
        });
        setImmediate(() => socket?.send('hello'));
      });
    },
    { clock: systemClock, connections: 1000, isTrusted: () => false },
  );
  const url = await engine.listen('127.0.0.1', 0);
  t.teardown(() => {
    engine.stopListening();
    engine.close();
  });

  await t.test('every connection stays open', async (t) => {
    let left = handshakes;
    let lost = 0;
    const client = async (): Promise<void> => {
      while (left-- > 0) {
        const connection = openRaw(url, handshake('Connection: Upgrade'));
        await until('a greeting', () => connection.text().endsWith('hello') || connection.closed());
        if (!connection.text().endsWith('hello')) lost++;
        connection.socket.destroy();
      }
    };
    await Promise.all(Array.from({ length: atOnce }, client));
    t.equal(lost, 0);
  });

  await t.test('a connection that is to end is none for a handshake', async (t) => {
    for (const header of ['Connection: close', 'Connection: abcde'])
      for (const both of [`${header}\r\nConnection: Upgrade`, `Connection: Upgrade\r\n${header}`]) {
        const connection = openRaw(url, handshake(both));
        await until('a reply', () => connection.status() !== undefined || connection.closed());
        t.not(connection.status(), undefined, both);
        if (header.endsWith('close')) t.equal(connection.status(), 426);
        connection.socket.destroy();
      }
  });
});
