/**
 * Somebody reads the logs of the proxy, or takes the proxy over from the internet. What is in a
 * query, such as tokens, codes and commands, must not be in its log, and the process must own
 * nothing. While no gateway answers, programs get the API's own error from it.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { WebSocket, WebSocketServer } from 'ws';
import { atLeast } from '../../../dev/fetch/tool-table.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { run } from '../../../dev/process/run.ts';
import { makeNatsCertificates } from '../../../dev/servers/nats-certificates.ts';
import { limits } from '../../../schemas/limits.ts';
import { openRaw } from '../../gateway/sockets.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { replaced, startProxy } from './haproxy.ts';
import { nginxConfiguration, nginxSample, startNginx } from './nginx.ts';

const skip = await skipWithoutTools('haproxy');
/** `true` if it answers with the files of the sample to a head that it cannot read. */
const [major = 0, minor = 0] = skip === false ? (await toolHere('haproxy')).version.split('.').map(Number) : [];
const isOfFiles = atLeast([major, minor], [3, 3]);
const skipNginx = await skipWithoutTools('nginx');
const secret = 'hunter2-lsd_6_token';

/** Answers every request and echoes WebSocket messages. After `leave()`, answers with 503. */
async function gateway(t: Test) {
  let isReady = true;
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/broken') === true) return void response.socket?.end('no HTTP\r\n\r\n');
    if (request.url?.startsWith('/gone') === true) return void response.socket?.destroy();
    let length = 0;
    request.on('data', (part: Buffer) => (length += part.length));
    request.on('end', () => response.writeHead(isReady ? 200 : 503).end(JSON.stringify({ length })));
  });
  new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', (data) => socket.send(data)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { at: `127.0.0.1:${port}`, leave: () => (isReady = false) };
}

async function isError(t: Test, answer: Response, status: number, error: string): Promise<void> {
  t.equal(answer.status, status);
  t.equal(answer.headers.get('content-type'), 'application/json');
  t.match(await answer.json(), { error, message: /\w/ });
}

/** The same of a request that `fetch` does not send. */
async function isRawError(t: Test, url: string, sent: string, status: number, error: string): Promise<void> {
  const connection = openRaw(url, sent);
  t.teardown(() => connection.socket.destroy());
  await until('an answer', () => connection.text().includes('}') || connection.closed());
  t.equal(connection.status(), status, connection.text());
  t.match(connection.text(), /^content-type: application\/json\r$/im);
  t.match(connection.text(), `{"error":"${error}","message":"`);
}

t.test('behind the sample of HAProxy', { skip, timeout: 120_000 }, async (t) => {
  const { at, leave } = await gateway(t);
  const { url, pid, logFile, chroot } = await startProxy(t, at);
  const log = (): string => readFileSync(logFile, 'utf8');
  await until('ready', async () => (await fetch(`${url}/readyz`)).status === 200);

  await t.test('no query is in its log, whatever becomes of the request', async (t) => {
    const paths = ['/api/v2/compute/x/exec', '/api/forage/config/p', '/login/callback', '/broken'];
    for (const path of paths) await (await fetch(`${url}${path}?command=${secret}&token=${secret}`)).text();
    for (const request of [
      `GET http://a/whole?token=${secret} HTTP/1.1\r\nHost: a\r\n\r\n`,
      `GET /too-late?token=${secret} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n`,
      `GET /not http?token=${secret} HTTP/1.1\r\nHost: a\r\n\r\n`,
      `BREW\u0000 /?token=${secret}\r\n\r\n`,
    ]) {
      const connection = openRaw(url, request);
      t.teardown(() => connection.socket.destroy());
      await until('an answer', () => connection.status() !== undefined || connection.closed());
    }
    for (const path of [...paths, '/whole', '/too-late']) await until(`${path} is logged`, () => log().includes(path));
    t.notMatch(log(), secret);
    t.notMatch(log(), '?');
  });

  await t.test('it has no rights, and sees no files', { skip: process.getuid?.() !== 0 }, (t) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    t.match(status, /^Uid:\t65534\t65534\t65534\t65534$/m);
    t.match(status, /^Gid:\t65534\t65534\t65534\t65534$/m);
    t.match(status, /^CapEff:\t0+$/m);
    t.equal(readlinkSync(`/proc/${pid}/root`), chroot);
    t.end();
  });

  await t.test('a gateway whose answer is none, or none at all: JSON, with a time', async (t) => {
    await isError(t, await fetch(`${url}/broken`), 502, 'timeout');
    const expecting = 'POST /cut HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n';
    const cut = openRaw(url, expecting);
    await until('it waits for the body', () => cut.status() === 100);
    cut.socket.write('no length\r\n');
    await until('an answer', () => cut.text().includes('}') || cut.closed());
    t.match(
      cut.text(),
      /HTTP\/1\.1 400 [^]*\r\ncontent-type: application\/json\r\n[^]*{"error":"bad_request","message":"/,
    );
    await isRawError(t, url, 'POST /late HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n', 408, 'bad_request');
    const large = `POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: ${limits.documentBytes + 1}\r\n\r\n`;
    await isRawError(t, url, large + ' '.repeat(20_000), 413, 'too_large');
    for (const [what, head, status] of [
      ['a blank in the path', 'GET /not http HTTP/1.1\r\nHost: a\r\n\r\n', 400],
      ['a header without a colon', 'GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n', 400],
      ['headers that are too long', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    ] as const) {
      if (isOfFiles) {
        await isRawError(t, url, head, status, 'bad_request');
        continue;
      }
      const connection = openRaw(url, head);
      await until('the end', () => connection.closed());
      t.match(connection.text(), /^HTTP\/1\.1 400 [^]*\r\ncontent-type: text\/html\r\n/i, `${what}: a page of its own`);
    }
    leave();
    await until('the proxy answers by itself', async () => {
      const answer = await fetch(`${url}/api/v2/compute`);
      return answer.status === 503 && (await answer.text()).includes('unavailable');
    });
    const away = await fetch(`${url}/api/v2/compute`);
    t.equal(away.headers.get('content-type'), 'application/json');
    t.match(away.headers.get('retry-after'), /^\d+$/);
    t.match(await away.json(), { error: 'unavailable', message: 'no gateway is ready; nothing was executed' });
  });
});

t.test('the sample for nginx logs paths, and no errors with whole requests', (t) => {
  t.match(nginxSample, /access_log \S+ paths;/);
  t.match(nginxSample, /error_log \S+ crit;/);
  t.notMatch(nginxSample, /\$(?:request|request_uri|args|query_string|http_(?:referer|cookie|authorization))\b/);
  t.end();
});

t.test('nginx accepts the sample as it is', { skip: skipNginx }, async (t) => {
  const folder = temporaryFolder(t);
  const { servers } = await makeNatsCertificates(folder, [{ name: 'api', address: 'api.example.net' }]);
  const { certFile, keyFile } = servers[0]!;
  const file = join(folder, 'nginx.conf');
  const sample = replaced(nginxSample, [
    ['/etc/nginx/api.pem', certFile],
    ['/etc/nginx/api.key', keyFile],
  ]);
  writeFileSync(file, nginxConfiguration(folder, sample));
  const tool = await toolHere('nginx');
  const ran = await run(tool.path, ['-t', '-p', folder, '-c', file], { deadlineMs: 60_000, env: tool.env });
  t.equal(ran.code, 0, ran.stdout + ran.stderr);
  t.notMatch(ran.stderr, /\[(?:warn|emerg)\]/);
});

t.test('behind the sample of nginx', { skip: skipNginx, timeout: 120_000 }, async (t) => {
  const { at } = await gateway(t);
  const { url, logFile } = await startNginx(t, at);

  await t.test('no query is in its log', async (t) => {
    for (const path of ['/api/v2/compute/x/exec', '/gone'])
      await (await fetch(`${url}${path}?command=${secret}&token=${secret}`)).text();
    const log = (): string => readFileSync(logFile, 'utf8');
    await until('both are logged', () => log().includes('/exec') && log().includes('/gone'));
    t.notMatch(log(), secret);
  });

  await t.test('the largest document of a container passes, and a larger body is JSON', async (t) => {
    const put = (length: number): Promise<Response> =>
      fetch(`${url}/api/v2/containers/web`, { method: 'PUT', body: Buffer.alloc(length) });
    t.same(await (await put(limits.documentBytes)).json(), { length: limits.documentBytes });
    await isError(t, await put(limits.documentBytes + 1), 413, 'too_large');
  });

  await t.test('a session of exec and of forward passes, both ways', async (t) => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v2/compute/x/exec`);
    t.teardown(() => socket.terminate());
    await once(socket, 'open');
    socket.send('hello');
    const [data] = (await once(socket, 'message')) as [Buffer];
    t.equal(data.toString(), 'hello');
  });

  await t.test('its own answers are JSON', async (t) => {
    await isError(t, await fetch(`${url}/gone`), 504, 'timeout');
    for (const request of [`GET /a b HTTP/1.1\r\n\r\n`, `GET /${'a'.repeat(9000)} HTTP/1.1\r\nHost: a\r\n\r\n`])
      await isRawError(t, url, request, 400, 'bad_request');
  });
});
