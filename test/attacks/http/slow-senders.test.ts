/**
 * Slow senders and smugglers in front of a real HAProxy with the configuration of deploy/haproxy/.
 * An incomplete request must not reach a gateway, a hidden request must not pass the proxy, and no
 * client may choose the address that it is limited by.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { makeNatsCertificates } from '../../../dev/servers/nats-certificates.ts';
import { run } from '../../../dev/process/run.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { ambiguousRequests, hiddenRequest, misframedChunks } from '../../gateway/smuggling.ts';
import { get, halfPost, openRaw, statusOf } from '../../gateway/sockets.ts';
import { memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround, type RunningGateway } from '../../integration/gateway/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';
import { replaced, sample, startProxy, unprivileged } from './haproxy.ts';

const compute = '/api/v2/compute';
/** The path that the proxy denies, for the tests of hidden requests. */
const denied = '/api/v2/openapi.json';
const skip = await skipWithoutTools('haproxy');
const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const token = await ground.issuer.mint();
const requestsOf = async ({ registry }: RunningGateway, route: string): Promise<number> => {
  const metric = await registry.getSingleMetric('longshore_gateway_requests_total')?.get();
  const values = (metric?.values ?? []).filter(({ labels }) => labels['route'] === route);
  return values.reduce((sum, { value }) => sum + value, 0);
};

t.test('HAProxy accepts the sample configuration as it is', { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const { servers } = await makeNatsCertificates(folder, [{ name: 'api', address: 'api.example.net' }]);
  const { certFile, keyFile } = servers[0]!;
  const [pem, file] = [join(folder, 'both.pem'), join(folder, 'haproxy.cfg')];
  writeFileSync(pem, readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8'));
  writeFileSync(file, replaced(sample, [['/etc/haproxy/api.pem', pem], ...unprivileged(folder)]));
  const tool = await toolHere('haproxy');
  const ran = await run(tool.path, ['-c', '-f', file], { deadlineMs: 60_000, env: tool.env });
  t.equal(ran.code, 0, ran.stdout + ran.stderr);
  t.notMatch(ran.stdout + ran.stderr, /WARNING|ALERT/);
});

t.test('behind HAProxy', { skip }, async (t) => {
  const env = { TRUSTED_PROXIES: '127.0.0.1', RATE_LIMIT_PUBLIC_PER_SECOND: '1', RATE_LIMIT_PUBLIC_BURST: '3' };
  const gateway = await runGateway(t, ground, { env });
  const { url } = await startProxy(t, new URL(gateway.url).host, {
    changes: [['  default_backend', `  http-request deny deny_status 403 if { path ${denied} }\n  default_backend`]],
  });
  await until('ready', async () => (await fetch(`${url}/readyz`)).status === 200);

  await t.test('a request that is not complete does not reach a gateway', async (t) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Content-Length': '100' };
    const half = Array.from({ length: 100 }, () => openRaw(url, halfPost(compute, headers, '{')));
    t.teardown(() => half.forEach(({ socket }) => socket.destroy()));
    t.equal(await statusOf(url, get(compute, token)), 200, 'other clients get answers meanwhile');
    await until('given up by the proxy', () => half.every(({ status, closed }) => status() === 408 || closed()));
    t.equal(await requestsOf(gateway, 'container.create'), 0, 'the gateway saw none of them');
  });

  await t.test('a request hidden in another does not pass the proxy', async (t) => {
    for (const [what, request] of [...ambiguousRequests('/healthz'), ...misframedChunks('/healthz')]) {
      const hiding = request.replaceAll(hiddenRequest, hiddenRequest.replace('/hidden', denied));
      const connection = openRaw(url, hiding);
      await until('an answer', () => connection.status() !== undefined || connection.closed());
      connection.socket.destroy();
      t.not(connection.status(), 200, what);
    }
    t.equal(await requestsOf(gateway, 'openapi'), 0, 'the gateway got no request for the path that the proxy denies');
    t.equal(await statusOf(url, get(denied)), 403);
  });

  await t.test('correctly framed chunks reach the gateway', async (t) => {
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(Buffer.from('{"name":'));
        controller.enqueue(Buffer.from('"chunks"}'));
        controller.close();
      },
    });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(`${url}${compute}`, { method: 'POST', headers, body, duplex: 'half' });
    t.equal(response.status, 201);
    await response.text();
  });

  await t.test('a client cannot choose the address that limits count', async (t) => {
    const statuses: number[] = [];
    while (statuses.at(-1) !== 429 && statuses.length < 60) {
      const spoofed = get('/metrics/forage').replace(
        'Host: a',
        `Host: a\r\nX-Forwarded-For: 192.0.2.${statuses.length}`,
      );
      statuses.push(await statusOf(url, spoofed, '127.0.0.7'));
    }
    t.equal(statuses.at(-1), 429, 'a new address in the header for each request changes nothing');
    t.equal(await statusOf(url, get('/metrics/forage'), '127.0.0.8'), 200, 'a client at another address');
  });
});
