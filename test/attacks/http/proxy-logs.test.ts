/**
 * Somebody reads the logs of the proxy, or takes the proxy over from the internet. What is in a
 * query, such as tokens, codes and commands, must not be in its log, and the process must own
 * nothing. While no gateway answers, programs get the API's own error from it.
 */
import { createServer } from 'node:http';
import { readFileSync, readlinkSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { openRaw } from '../../gateway/sockets.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { startProxy } from './haproxy.ts';

const skip = await skipWithoutTools('haproxy');
const secret = 'hunter2-lsd_6_token';

/** Answers everything, until it is told to fall silent. */
async function gateway(t: Test) {
  let isReady = true;
  const server = createServer((request, response) => {
    request.resume();
    if (request.url?.startsWith('/broken') === true) return void response.socket?.end('no HTTP\r\n\r\n');
    response.writeHead(isReady ? 200 : 503).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { at: `127.0.0.1:${port}`, leave: () => (isReady = false) };
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
    const broken = await fetch(`${url}/broken`);
    t.match([broken.status, await broken.json()], [502, { error: 'timeout' }]);
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
  const text = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8');
  const [nginx = ''] = /^# nginx[^]*?^```/m.exec(text) ?? [];
  t.match(nginx, /access_log \S+ paths;/);
  t.match(nginx, /error_log \S+ crit;/);
  t.notMatch(nginx, /\$(?:request|request_uri|args|query_string|http_(?:referer|cookie|authorization))\b/);
  t.end();
});
