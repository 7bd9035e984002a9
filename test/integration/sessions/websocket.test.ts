/** Sessions over WebSocket, on both HTTP engines: what is refused, and what passes. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import t from 'tap';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { execProtocol, forwardProtocol } from '../../../schemas/words.ts';
import { limits } from '../../../schemas/limits.ts';
import { containerId } from '../../actors/support.ts';
import { openRaw, statusOf } from '../../gateway/sockets.ts';
import { engines, memoryOwner, okData, recordingLog, refusal, serveOwner } from '../../gateway/support.ts';
import { until } from '../../support/until.ts';
import { runGateway, startGround } from '../gateway/support.ts';
import { open, refused, type ask } from './client.ts';
import { echoKind, hostOn, placeOf, serveSessions, type Taken } from './support.ts';

const compute = '/api/v2/compute';
const key = 'dGhlIHNhbXBsZSBub25jZQ==';

t.test('sessions over WebSocket', async (t) => {
  const ground = await startGround(t);
  const host = await hostOn(t, ground.nats, 'h1');
  const taken: Taken[] = [];
  const agent = serveSessions(host, [echoKind(taken)]);
  const [id, stopped, absent] = [containerId(), containerId(), containerId()];
  const memory = memoryOwner();
  for (const one of [id, stopped]) memory.containers.set(`acme ${one}`, { id: one, tenant_id: 'acme' } as never);
  serveOwner(ground.nc, (asked: Ask) => {
    if (asked.type === 'audit.note') return okData(null);
    if (asked.type !== 'container.session' || asked.tenant !== 'acme') return memory(asked);
    if (asked.id === stopped) {
      return { code: 'conflict', body: '{"error":"conflict","message":"the container does not run: it is stopped"}' };
    }
    return asked.id === id ? okData(placeOf(host)) : refusal('not_found');
  });
  const token = await ground.issuer.mint({ tenant_id: 'acme' });

  for (const engine of engines) {
    await t.test(`on ${engine}`, async (t) => {
      const log = recordingLog();
      const gateway = await runGateway(t, ground, { engine, log });
      const { url } = gateway;
      const forward = (of: string = id, port: number | string = 80): string =>
        `${url}${compute}/${of}/forward?port=${port}`;
      const exec = (query: string, of: string = id): string => `${url}${compute}/${of}/exec?${query}`;
      const none = (): boolean => agent.count() === 0;

      await t.test('refusals are answers over HTTP', async (t) => {
        const rows: [string, string, Parameters<typeof ask>[1], number, RegExp][] = [
          ['no token', forward(), {}, 401, /unauthenticated/],
          ['a container of nobody', forward(absent), { token }, 404, /not_found/],
          [
            'of another tenant',
            forward(),
            { token: await ground.issuer.mint({ tenant_id: 'rival' }) },
            404,
            /not_found/,
          ],
          ['no port', `${url}${compute}/${id}/forward`, { token }, 422, /"port":\["is required"\]/],
          ['a wrong port', forward(id, 70_000), { token }, 422, /from 1 to 65535/],
          ['no command', exec(''), { token }, 422, /"command":\["is required"\]/],
          [
            'wrong all over',
            exec('tty=x&user=a%20b&workdir=tmp', id),
            { token },
            422,
            /(?=.*"command")(?=.*"tty")(?=.*"user")(?=.*"workdir")/,
          ],
          ['faults of a container of nobody', exec('', absent), { token }, 404, /not_found/],
          ['another subprotocol', forward(), { token, protocols: ['chat'] }, 400, /longshore\.forward\.v1/],
          ['that of an exec', forward(), { token, protocols: [execProtocol] }, 400, /longshore\.forward\.v1/],
          ['one that does not run', forward(stopped), { token }, 409, /it is stopped/],
          ['a port where nobody listens', forward(id, 9), { token }, 409, /nobody listens/],
          ['a kind that the agent has not', exec('command=sh'), { token }, 409, /upgrade it/],
        ];
        for (const [what, target, asking, status, body] of rows) {
          const answer = await refused(target, asking);
          t.equal(answer.status, status, what);
          t.match(answer.body, body, what);
          t.ok(answer.headers['x-request-id'], what);
        }
        t.equal(agent.count(), 0);
      });

      await t.test('with a cookie only pages of our own', async (t) => {
        const cookie = { cookie: `_dro_token=${token}` };
        const { host: ours } = new URL(url);
        for (const headers of [
          {},
          { origin: 'https://evil.example' },
          { origin: 'null' },
          { origin: `http://${ours}.evil` },
        ]) {
          t.equal(
            (await refused(forward(), { headers: { ...cookie, ...headers } })).status,
            403,
            JSON.stringify(headers),
          );
        }
        const session = await open(forward(), { headers: { ...cookie, origin: `http://${ours}` } });
        session.socket.close();
        const other = await open(forward(), { token, headers: { origin: 'https://evil.example' } });
        other.socket.close();
        await until('both are over', none);
      });

      await t.test('requests that are no handshake of version 13', async (t) => {
        const lines = (more: readonly string[], method = 'GET'): string =>
          [
            `${method} ${new URL(forward()).pathname}?port=80 HTTP/1.1`,
            'Host: x',
            `Authorization: Bearer ${token}`,
            ...more,
            '',
            '',
          ].join('\r\n');
        const upgrade = ['Connection: keep-alive, Upgrade', 'Upgrade: websocket', `Sec-WebSocket-Key: ${key}`];
        const protocol = `Sec-WebSocket-Protocol: ${forwardProtocol}`;
        const rows: Record<string, string> = {
          'an ordinary GET': lines([]),
          'a HEAD': lines([...upgrade, 'Sec-WebSocket-Version: 13', protocol], 'HEAD'),
          'no version': lines([...upgrade, protocol]),
          'version 8': lines([...upgrade, 'Sec-WebSocket-Version: 8', protocol]),
          'two versions': lines([...upgrade, 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Version: 8', protocol]),
          'no Connection': lines([...upgrade.slice(1), 'Sec-WebSocket-Version: 13', protocol]),
          'another protocol': lines(['Connection: Upgrade', 'Upgrade: h2c', 'Sec-WebSocket-Version: 13', protocol]),
          'a key that is none': lines([
            'Connection: Upgrade',
            'Upgrade: websocket',
            'Sec-WebSocket-Key: abc',
            'Sec-WebSocket-Version: 13',
            protocol,
          ]),
          'a body': `${lines([...upgrade, 'Sec-WebSocket-Version: 13', protocol, 'Content-Length: 2'])}hi`,
        };
        for (const [what, text] of Object.entries(rows)) {
          const connection = openRaw(url, text);
          await until(what, () => connection.status() !== undefined || connection.closed());
          t.equal(connection.status(), 426, what);
          t.match(connection.text(), /\r\nupgrade: websocket\r\n/i, what);
          connection.socket.destroy();
        }
        const twoKeys = lines([...upgrade, `Sec-WebSocket-Key: ${key}`, 'Sec-WebSocket-Version: 13', protocol]);
        t.equal(await statusOf(url, twoKeys), 400, 'two keys');
        t.equal(agent.count(), 0);
      });

      await t.test('a smuggled handshake runs nothing', async (t) => {
        const hidden = `GET ${new URL(forward()).pathname}?port=80 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ${forwardProtocol}\r\n\r\n`;
        const before = taken.length;
        for (const first of [
          `POST /healthz HTTP/1.1\r\nHost: x\r\n\r\n${hidden}`,
          `GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n${hidden}`,
        ]) {
          const connection = openRaw(url, first);
          await until('the end', () => connection.closed());
          t.notMatch(connection.text(), /^HTTP\/1\.1 101/m);
        }
        t.equal(taken.length, before);
      });

      await t.test('requests with a wish for another protocol are served as they are', async (t) => {
        const wish = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n';
        t.equal(await statusOf(url, `GET /healthz HTTP/1.1\r\nHost: x\r\n${wish}\r\n`), 200);
        const body = JSON.stringify({ name: 'web', repository: 'demo', tag: '1' });
        const post = `POST ${compute} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${wish}\r\n${body}`;
        t.equal(await statusOf(url, post), 201, 'with its body');
      });

      await t.test('bytes there and back, and the sum of them in the log', async (t) => {
        const session = await open(forward(), { token });
        t.equal(session.socket.protocol, forwardProtocol);
        const sent = randomBytes(12 * limits.tunnelWindowBytes);
        await session.send(sent);
        await until('all is back', () => session.count(0) === sent.length);
        t.ok(session.bytes(0).equals(sent));
        session.socket.close(1000);
        await session.closed();
        const ended = () => log.events.findLast(({ event }) => event === 'session_ended')?.fields;
        await until('the end is in the log', () => ended()?.['bytes_in'] === sent.length);
        t.match(ended(), {
          kind: 'forward',
          tenant: 'acme',
          container: id,
          host: 'h1',
          subject: String,
          reason: 'left',
          bytes_in: sent.length,
          bytes_out: sent.length,
        });
        t.ok(log.events.some(({ event, fields }) => event === 'request' && fields['status'] === 101));
        await until('the host has heard', none);
      });

      await t.test('a client that does not read stops the host, and nothing grows', async () => {
        const session = await open(forward(), { token });
        session.socket.pause();
        let sent = 0;
        // Until neither the window nor the buffers of the kernel have room.
        for (let quiet = 0; quiet < 20;) {
          const part = Math.min(session.room(), limits.tunnelMessageBytes);
          if (part === 0) {
            quiet++;
            await new Promise((resolve) => setTimeout(resolve, 10));
            // Windows come with what is read.
            session.socket.resume();
            await new Promise((resolve) => setImmediate(resolve));
            session.socket.pause();
            continue;
          }
          await session.send(Buffer.alloc(part, 1));
          sent += part;
          if (sent > 64 * limits.tunnelWindowBytes) break;
        }
        session.socket.resume();
        await until('all came back', () => session.count(0) === sent);
        session.socket.close();
        await until('it is over', none);
      });

      await t.test('a client that sends more than its window is closed', async (t) => {
        const session = await open(forward(), { token });
        session.socket.pause();
        for (let sent = 0; sent <= 16 * limits.tunnelWindowBytes; sent += limits.tunnelMessageBytes) {
          session.socket.send(Buffer.alloc(limits.tunnelMessageBytes));
        }
        session.socket.resume();
        t.match(await session.closed(), { code: 1009, reason: /^over_window: / });
        await until('it is over', none);
      });

      await t.test('messages that break the rules', async (t) => {
        const rows: [string, (socket: { send(message: string | Buffer): void }) => void][] = [
          ['no JSON', (socket) => socket.send('{')],
          ['an unknown control', (socket) => socket.send('{"type":"moon"}')],
          ['one of another kind of session', (socket) => socket.send('{"type":"resize","cols":1,"rows":1}')],
          [
            'a long one',
            (socket) => socket.send(JSON.stringify({ type: 'end', x: 'x'.repeat(limits.tunnelControlBytes) })),
          ],
        ];
        for (const [what, send] of rows) {
          const session = await open(forward(), { token });
          send(session.socket);
          t.match(await session.closed(), { code: 1008, reason: /^invalid: / }, what);
        }
        await until('all are over', none);
      });

      await t.test('it ends with its token', async (t) => {
        const short = await ground.issuer.mint({ tenant_id: 'acme', exp: Math.ceil(Date.now() / 1000) + 2 });
        const session = await open(forward(), { token: short });
        t.match(await session.closed(), { code: 4401, reason: /^unauthenticated: / });
        await until('it is over', none);
      });

      await t.test('a tenant has sixteen at a gateway, and a container eight', async (t) => {
        const before = taken.length;
        const eight = await Promise.all(
          Array.from({ length: limits.sessionsPerContainer }, () => open(forward(), { token })),
        );
        t.match(await refused(forward(), { token }), { status: 429, body: /the container has 8 sessions/ });
        t.equal(taken.length, before + eight.length);
        for (const { socket } of eight) socket.terminate();
        await until('all are over', none);
        t.match(
          taken.slice(before).map(({ ends }) => ends[0]?.reason),
          Array(8).fill('left'),
          'the host heard why',
        );
      });

      await t.test('a gateway that stops says so', async (t) => {
        const session = await open(forward(), { token });
        const stopping = gateway.stop();
        t.match(await session.closed(), { code: 1001, reason: /^stopping: / });
        await stopping;
        await until('it is over', none);
        const { port } = new URL(url);
        const socket = connect(Number(port), '127.0.0.1');
        await new Promise((resolve) => socket.once('close', resolve).once('error', () => undefined));
        t.pass('nothing listens any more');
      });
    });
  }
});
