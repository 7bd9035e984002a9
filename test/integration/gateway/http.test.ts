/**
 * Requests that two HTTP parsers could read differently, and bodies over their bounds: raw bytes on
 * real sockets, on both engines.
 */
import { connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { createEngine } from '../../../gateway/http/engine/choose.ts';
import type { Exchange, HttpEngine } from '../../../gateway/http/engine/engine.ts';
import { drain } from '../../../gateway/http/engine/shutdown.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { ambiguousRequests, hiddenRequest as hidden, misframedChunks } from '../../gateway/smuggling.ts';
import { engines, quietLog, recordingLog } from '../../gateway/support.ts';
import { until } from '../../support/until.ts';

interface Stage {
  /** The engine's clock stands still except while `whileTimePasses` runs. */
  readonly clock: { monotonicMs(): number; advance(ms: number): void };
  readonly engine: HttpEngine;
  readonly port: number;
  /** Method and path of each request that was dispatched. */
  readonly seen: string[];
  /** Paths of the requests whose reply has been written, or never will be. */
  readonly finished: string[];
}

/**
 * An engine with a program that echoes bodies, holds `/slow` for a while and answers `/large` with
 * five megabytes and `/huge` with forty.
 */
async function stage(t: Test, name: 'uws' | 'node', connections: number = limits.connections): Promise<Stage> {
  const seen: string[] = [];
  const finished: string[] = [];
  let shownMs = 0;
  const clock = { nowMs: () => shownMs, monotonicMs: () => shownMs, advance: (ms: number) => void (shownMs += ms) };
  const engine = await createEngine(
    name,
    (exchange: Exchange) => {
      const { head } = exchange;
      seen.push(`${head.method} ${head.path}`);
      exchange.whenFinished(() => finished.push(head.path));
      const reply = (body: string, status = 200): void =>
        exchange.reply({ status, headers: ['x-echo', `${head.query} ${head.address}`], body });
      if (head.isMalformed) reply('malformed', 400);
      else if (head.path === '/slow') setTimeout(() => reply('slow'), 200);
      else if (head.path === '/large') reply('x'.repeat(5_000_000));
      else if (head.path === '/huge') reply('x'.repeat(40_000_000));
      else if (head.path === '/unread') reply('no', 401);
      else if (head.path === '/inject') exchange.reply({ status: 200, headers: ['x-a', 'b\r\nx-evil: 1\0'], body: '' });
      else if (head.path === '/stream') {
        const sink = exchange.stream({ status: 200, headers: ['content-type', 'text/event-stream'] });
        sink.write('one');
        setTimeout(() => {
          sink.write('two');
          sink.end();
        }, 20);
      } else
        exchange.body.whenKnown((body) =>
          typeof body === 'string' ? reply(body, 413) : reply(`${head.path}=${Buffer.from(body).toString()}`),
        );
    },
    { log: quietLog, clock, connections, isTrusted: () => false },
  );
  const url = await engine.listen('127.0.0.1', 0);
  t.teardown(() => engine.close());
  return { engine, port: Number(new URL(url).port), seen, finished, clock };
}

interface Talk {
  readonly text: string;
  readonly closed: boolean;
}

const options = { clock: systemClock, connections: limits.connections, isTrusted: () => false };
const turnMs = 10;

/**
 * Lets the engine's clock run, five times as fast as the system's, until `isOver`: uWebSockets.js
 * cuts a slow connection after ten seconds by its own clock.
 */
async function whileTimePasses({ clock }: Stage, what: string, isOver: () => boolean): Promise<number> {
  const beganMs = clock.monotonicMs();
  const timer = setInterval(() => clock.advance(5 * turnMs), turnMs);
  await until(what, isOver).finally(() => clearInterval(timer));
  return clock.monotonicMs() - beganMs;
}

/** Sends one piece; once it is dispatched, time passes until the other side closes. */
async function converse(stage: Stage, piece: string): Promise<Talk & { readonly tookMs: number }> {
  const socket = connect(stage.port, '127.0.0.1');
  let text = '';
  let closed = false;
  socket.on('data', (data) => (text += data.toString('latin1')));
  socket.on('close', () => (closed = true));
  socket.on('error', () => (closed = true));
  socket.write(piece);
  await until('dispatched', () => stage.engine.inFlight() === 1 || closed);
  const tookMs = await whileTimePasses(stage, 'the end', () => closed);
  return { text, closed, tookMs };
}

/**
 * Sends the pieces, a little apart, and returns what came back until the connection closed or was
 * quiet. Quiet is counted in turns of the event loop, which the engine shares: a process that gets
 * no processor time for a while only seems quiet.
 */
async function talk(port: number, pieces: readonly string[], quietMs = 150): Promise<Talk> {
  const socket: Socket = connect(port, '127.0.0.1');
  let text = '';
  let closed = false;
  let quietTurns = 0;
  socket.on('data', (data) => {
    text += data.toString('latin1');
    quietTurns = 0;
  });
  socket.on('close', () => (closed = true));
  socket.on('error', () => (closed = true));
  for (const piece of pieces) {
    socket.write(piece);
    await sleep(turnMs);
  }
  for (quietTurns = 0; !closed && quietTurns * turnMs < quietMs; quietTurns++) await sleep(turnMs);
  socket.destroy();
  return { text, closed };
}

const statusesOf = ({ text }: Talk): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, code]) => code ?? '');
/**
 * The requests that finish, in order, if the client does not read one reply. Takes as long as a
 * connection may be idle.
 */
async function leftUnread(name: 'uws' | 'node'): Promise<readonly string[]> {
  const { port, finished } = await stage(t, name);
  const reader = connect(port, '127.0.0.1').pause();
  reader.on('error', () => {});
  reader.write('GET /huge HTTP/1.1\r\nHost: a\r\n\r\n');
  await talk(port, ['GET /x HTTP/1.1\r\nHost: a\r\n\r\n']);
  await until(`${name}: given up`, () => finished.includes('/huge'));
  reader.destroy();
  return finished;
}

const unread = engines.map(leftUnread);

for (const name of engines) {
  t.test(`on ${name}`, async (t) => {
    await t.test('ambiguous requests are refused, and requests hidden in them do not run', async (t) => {
      const { port, seen } = await stage(t, name);
      for (const [what, request] of ambiguousRequests('/x')) {
        seen.length = 0;
        const answer = await talk(port, [request]);
        t.ok(answer.closed, `${what}: closed`);
        t.notOk(seen.includes('GET /hidden'), `${what}: nothing hidden ran`);
        t.notMatch(answer.text, /HTTP\/1\.1 2/, `${what}: no success`);
      }
    });

    await t.test('a POST without framing is empty and the last of its connection', async (t) => {
      const { port, seen } = await stage(t, name);
      const answer = await talk(port, [`POST /start HTTP/1.1\r\nHost: a\r\n\r\n`]);
      t.same(statusesOf(answer), ['200']);
      t.match(answer.text, /\/start=$/);
      t.match(answer.text, /connection: close/i);
      t.ok(answer.closed);
      for (const pieces of [
        [`POST /start HTTP/1.1\r\nHost: a\r\n\r\n${hidden}`],
        ['POST /slow HTTP/1.1\r\nHost: a\r\n\r\n', hidden],
      ]) {
        const smuggled = await talk(port, pieces, 400);
        t.ok(smuggled.closed);
        t.ok(statusesOf(smuggled).length <= 1);
        t.notOk(seen.includes('GET /hidden'));
      }
    });

    await t.test('bodies on one connection: at once, chunked, in pieces', async (t) => {
      const { port } = await stage(t, name);
      const answer = await talk(port, [
        'POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel',
        'lo',
        'POST /d HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nde',
        'GET /c?x=1 HTTP/1.1\r\nHost: a\r\n\r\n',
      ]);
      t.same(statusesOf(answer), ['200', '200', '200']);
      for (const part of ['/a=hello', '/d=de', '/c=', 'x=1 127.0.0.1']) t.ok(answer.text.includes(part), part);
      t.notOk(answer.closed, 'kept alive');
      const chunked = await talk(port, [
        'POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\n',
        'de\r\n0\r\n\r\n',
      ]);
      t.same(statusesOf(chunked), ['200']);
      t.ok(chunked.text.includes('/b=abcde'));
      t.equal(
        chunked.closed,
        name === 'uws',
        'the parser of uWebSockets.js is too lenient to keep the connection after chunks',
      );
    });

    await t.test('after an early reply the rest of the body does not run as a request', async (t) => {
      const { port, seen } = await stage(t, name);
      const answer = await talk(port, [
        `POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: ${hidden.length}\r\n\r\n`,
        hidden,
        'GET /after HTTP/1.1\r\nHost: a\r\n\r\n',
      ]);
      t.same(statusesOf(answer), ['401', '200']);
      t.same(seen, ['POST /unread', 'GET /after']);
    });

    await t.test('a reply does not wait for a body that stalls; its connection ends', async (t) => {
      const staged = await stage(t, name);
      const { port, engine } = staged;
      for (const [what, request, status] of [
        ['a verdict without the body', 'POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc', '401'],
        ['chunks', 'POST /unread HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', '401'],
        [
          'declared too large',
          `POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${limits.documentBytes + 1}\r\n\r\nab`,
          '413',
        ],
      ] as const) {
        const answer = await converse(staged, request);
        t.ok(answer.tookMs < limits.bodyDrainMs, `${what}: when the client has paused`);
        t.same(statusesOf(answer), [status], what);
        t.match(answer.text, /connection: close/i, what);
      }
      // A client that sends one byte at a time never pauses; the engine cuts it off when the time
      // is over.
      const slow = connect(port, '127.0.0.1');
      slow.on('error', () => {});
      let text = '';
      slow.on('data', (data) => (text += data.toString('latin1')));
      slow.write('POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n');
      const trickle = setInterval(() => slow.write('x'), 10);
      t.teardown(() => clearInterval(trickle));
      await until('in flight', () => engine.inFlight() === 1);
      const tookMs = await whileTimePasses(staged, 'answered', () => /HTTP\/1\.1 401/.test(text));
      t.ok(tookMs < limits.bodyMs, 'when the time for it is over');
      clearInterval(trickle);
      slow.destroy();
      await until('nothing in flight', () => engine.inFlight() === 0);
    });

    await t.test('a body that is not complete in time is refused', async (t) => {
      const request = 'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc';
      const answer = await converse(await stage(t, name), request);
      t.ok(answer.tookMs >= limits.bodyMs);
      t.match(answer.text, /^HTTP\/1\.1 413[^]*too_late$/);
    });

    await t.test('no request runs after chunks with wrong framing', async (t) => {
      const { port, seen } = await stage(t, name);
      for (const [what, request] of misframedChunks('/x')) {
        seen.length = 0;
        const answer = await talk(port, [request], 400);
        t.notOk(seen.includes('GET /hidden'), what);
        t.ok(statusesOf(answer).length <= 1, what);
        if (name === 'node') t.notMatch(answer.text, /HTTP\/1\.1 2/, `${what}: refused`);
      }
    });

    await t.test('connections beyond the bound are closed', async (t) => {
      const held: Socket[] = [];
      t.teardown(() => held.forEach((socket) => socket.destroy()));
      const { port } = await stage(t, name, 2);
      const open = async (): Promise<string> => {
        const socket = connect(port, '127.0.0.1');
        held.push(socket);
        let text = '';
        let closed = false;
        socket.on('data', (data) => (text += data.toString('latin1')));
        socket.on('close', () => (closed = true));
        socket.on('error', () => (closed = true));
        socket.write('GET /x HTTP/1.1\r\nHost: a\r\n\r\n');
        await until('an answer or the end', () => closed || text.endsWith('/x='));
        return closed ? 'closed' : 'answered';
      };
      t.same([await open(), await open(), await open()], ['answered', 'answered', 'closed']);
      held.shift()?.destroy();
      await until('room again', async () => (await open()) === 'answered');
    });

    await t.test('a body over the bound is refused; far over it, the connection is cut', async (t) => {
      const { port } = await stage(t, name);
      const url = `http://127.0.0.1:${port}/x`;
      for (const [bytes, status] of [
        [limits.documentBytes, 200],
        [limits.documentBytes + 1, 413],
        [3 * limits.documentBytes, 413],
      ] as const) {
        const response = await fetch(url, { method: 'POST', body: 'x'.repeat(bytes) });
        t.equal(response.status, status, `${bytes} bytes`);
        await response.text();
      }
      const declared = await talk(port, [`POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${10 ** 10}\r\n\r\n`]);
      t.same(statusesOf(declared), ['413']);
      t.ok(declared.closed);
    });

    await t.test('HEAD, 204-like replies, large replies, header values', async (t) => {
      const { port } = await stage(t, name);
      const head = await talk(port, ['HEAD /large HTTP/1.1\r\nHost: a\r\n\r\n', 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n']);
      t.match(head.text, /content-length: 5000000\r\n/i);
      t.same(statusesOf(head), ['200', '200']);
      const large = await fetch(`http://127.0.0.1:${port}/large`);
      t.equal((await large.text()).length, 5_000_000);
      const injected = await talk(port, ['GET /inject HTTP/1.1\r\nHost: a\r\n\r\n']);
      t.notMatch(injected.text, /\r\nx-evil/i);
    });

    await t.test(
      'headers or a URL over the bound, and malformed requests, end only their own connection',
      async (t) => {
        const { port } = await stage(t, name);
        const long = await talk(port, [`GET /x HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(limits.headerBytes)}\r\n\r\n`]);
        t.ok(long.closed);
        t.notMatch(long.text, /HTTP\/1\.1 2/);
        const within = await talk(port, [`GET /x HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(8 * 1024)}\r\n\r\n`]);
        t.same(statusesOf(within), ['200'], '8 KiB of headers are accepted');
        for (const rubbish of [
          '\x16\x03\x01\x02\x00\x01',
          'GET\r\n\r\n',
          'GET /x HTTP/9.9\r\n\r\n',
          '\0\0\0\0\r\n\r\n',
        ]) {
          const answer = await talk(port, [rubbish]);
          t.notMatch(answer.text, /HTTP\/1\.1 2/);
        }
        t.equal((await fetch(`http://127.0.0.1:${port}/x`)).status, 200);
      },
    );

    await t.test('a stream is written piece by piece', async (t) => {
      const { port, engine } = await stage(t, name);
      t.equal(await (await fetch(`http://127.0.0.1:${port}/stream`)).text(), 'onetwo');
      await until('nothing in flight', () => engine.inFlight() === 0);
    });

    await t.test('a stream for an incomplete request ends its connection', async (t) => {
      const { port, seen } = await stage(t, name);
      const head = 'GET /stream HTTP/1.1\r\nHost: a\r\n';
      for (const [what, pieces] of [
        ['chunks that go on', [`${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`]],
        ['half of a body', [`${head}Content-Length: 100\r\n\r\n{`]],
        ['LF in chunks', [`${head}Transfer-Encoding: chunked\r\n\r\n0\n\r\n`]],
      ] as const) {
        const answer = await talk(port, [...pieces, '', '', '', '', '', '', hidden], 400);
        t.ok(answer.closed, `${what}: closed`);
        t.notOk(seen.includes('GET /hidden'), `${what}: nothing hidden ran`);
      }
    });

    await t.test('a reply finishes when it is written or its client has left', async (t) => {
      const { port, finished } = await stage(t, name);
      await talk(port, ['GET /x HTTP/1.1\r\nHost: a\r\n\r\n']);
      await until('a small one', () => finished.splice(0).join() === '/x');
      const held = connect(port, '127.0.0.1');
      held.write('GET /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n');
      await until('one that waits for a body', async () => {
        await talk(port, ['GET /x HTTP/1.1\r\nHost: a\r\n\r\n']);
        return finished.includes('/x');
      });
      t.same(finished.splice(0), ['/x']);
      held.destroy();
      await until('given up', () => finished.splice(0).join() === '/unread');
    });

    await t.test('a client that leaves is no longer in flight', async (t) => {
      const { port, engine } = await stage(t, name);
      const socket = connect(port, '127.0.0.1');
      socket.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
      await until('in flight', () => engine.inFlight() === 1);
      socket.destroy();
      await until('counted out', () => engine.inFlight() === 0);
      await sleep(250);
      t.equal(engine.inFlight(), 0, 'its late reply does nothing');
      const half = connect(port, '127.0.0.1');
      half.write('POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc');
      await until('in flight', () => engine.inFlight() === 1);
      half.destroy();
      await until('counted out', () => engine.inFlight() === 0);
    });

    await t.test('a kept-alive connection is served while the engine drains', async (t) => {
      const { port, engine } = await stage(t, name);
      const socket = connect(port, '127.0.0.1');
      t.teardown(() => socket.destroy());
      let text = '';
      let closed = false;
      socket.on('data', (data) => (text += data.toString('latin1')));
      socket.on('close', () => (closed = true));
      socket.on('error', () => (closed = true));
      socket.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
      await until('the first reply', () => text.endsWith('/a='));
      engine.refuseKeepAlive();
      engine.stopListening();
      await t.rejects(fetch(`http://127.0.0.1:${port}/x`), 'no new connections');
      socket.write('GET /b HTTP/1.1\r\nHost: a\r\n\r\n');
      await until('the second reply', () => closed || text.endsWith('/b='));
      t.match(text, /\/b=$/);
      t.match(text, /connection: close/i);
      await until('the end', () => closed);
    });

    await t.test('draining answers requests in flight and ends connections', async (t) => {
      const { port, engine } = await stage(t, name);
      const slow = talk(port, ['GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'], 500);
      await until('in flight', () => engine.inFlight() === 1);
      await drain(engine, systemClock, { delayMs: 10, graceMs: 5000 });
      const answer = await slow;
      t.same(statusesOf(answer), ['200']);
      t.match(answer.text, /connection: close/i);
      t.ok(answer.closed);
      await t.rejects(fetch(`http://127.0.0.1:${port}/x`));
    });

    await t.test(
      'draining waits for requests in flight, even if the process is blocked between two checks',
      async (t) => {
        const { port, engine } = await stage(t, name);
        const slow = talk(port, ['GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'], 500);
        await until('in flight', () => engine.inFlight() === 1);
        let nowMs = 0;
        const jumping = { nowMs: () => 0, monotonicMs: () => (nowMs += 1000) };
        await drain(engine, jumping, { delayMs: 0, graceMs: 10 ** 9 });
        t.same(statusesOf(await slow), ['200']);
      },
    );
  });
}

t.test('the engine gives up a reply that the client does not read', async (t) => {
  for (const finished of await Promise.all(unread)) t.same(finished, ['/x', '/huge']);
});

t.test('listening on a port in use is an error', async (t) => {
  for (const name of engines) {
    const { port } = await stage(t, name);
    const other = await createEngine(name, () => {}, { log: quietLog, ...options });
    await t.rejects(other.listen('127.0.0.1', port), name);
  }
});

t.test('node:http runs without a warning if it is configured', async (t) => {
  const log = recordingLog();
  t.equal((await createEngine('node', () => {}, { log, ...options })).name, 'node');
  t.same(log.events, []);
});
