/** Renewal of an agent's credentials by a gateway, which is a plain HTTP server here. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createUser } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import { createRenewal } from '../../../../host-agent/link/identity/renewal.ts';
import { isSignedRenewal } from '../../../../lib/nats/renewal.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import type { RenewBody } from '../../../../schemas/api/host.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { recordingLog } from '../../../gateway/support.ts';
import { until } from '../../../support/until.ts';

interface Given {
  readonly status: number;
  readonly cluster?: string;
}

async function startGateway(t: Test, answer: () => Given) {
  const asked: RenewBody[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked.push(JSON.parse(Buffer.concat(chunks).toString()) as RenewBody);
      const { status, cluster = 'c1' } = answer();
      const data = { host: 'h1', region: 'default', cluster, natsUrls: [], jwt: 'new' };
      response.writeHead(status).end(JSON.stringify({ data }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function renewing(t: Test, gatewayUrl: string, expiresInMs: number) {
  let expiryMs = Date.now() + expiresInMs;
  const renewed: string[] = [];
  const ending = new AbortController();
  const log = recordingLog();
  const renewal = createRenewal({
    gatewayUrl,
    identity: { host: 'h1' as HostKey, cluster: 'c1' },
    seed: createUser().getSeed(),
    credentials: {
      expiryMs: () => expiryMs,
      checkEveryMs: 3_600_000,
      renewed: (jwt) => {
        renewed.push(jwt);
        expiryMs = Date.now() + 3_600_000;
        return false;
      },
    },
    backoff: { minMs: 20, maxMs: 100 },
    clock: systemClock,
    log,
  });
  const ended = renewal.run(ending.signal);
  t.teardown(async () => {
    ending.abort();
    await ended;
  });
  const said = () => log.events.filter(({ event }) => event === 'credentials_renew_failed');
  return { renewal, renewed, said };
}

t.test('expired credentials are renewed, once, with a signature of their key', async (t) => {
  const gateway = await startGateway(t, () => ({ status: 200 }));
  const { renewed } = renewing(t, gateway.url, 200);
  await sleep(50);
  t.same(gateway.asked, [], 'while they are good, nothing is asked');
  await until('new ones', () => renewed.length > 0);
  await sleep(200);
  t.same(renewed, ['new']);
  t.ok(gateway.asked.every(isSignedRenewal));
});

t.test('good credentials that a NATS server refuses are renewed', async (t) => {
  const gateway = await startGateway(t, () => ({ status: 200 }));
  const { renewal, renewed } = renewing(t, gateway.url, 3_600_000);
  renewal.refused();
  await until('new ones', () => renewed.length === 1);
});

t.test('a gateway that refuses is asked ever more rarely, and the log says why once', async (t) => {
  const gateway = await startGateway(t, () => ({ status: 401 }));
  const { renewal, renewed, said } = renewing(t, gateway.url, -1);
  await sleep(2_000);
  // 20, 40, 80 … ms, each at least half of it.
  t.ok(gateway.asked.length >= 4 && gateway.asked.length <= 9, `${gateway.asked.length} in two seconds`);
  t.equal(new Set(gateway.asked.map(({ nonce }) => nonce)).size, gateway.asked.length, 'each with its own nonce');
  t.match(said(), [{ fields: { kind: 'refused', reason: /removed or is fenced.*clock.*join token/ } }]);
  t.equal(said().length, 1);
  renewal.refused();
  renewal.refused();
  t.same(renewed, []);
});

t.test('a NATS server that refuses what the gateway gives makes no loop', async (t) => {
  const gateway = await startGateway(t, () => ({ status: 200 }));
  const { renewal } = renewing(t, gateway.url, 3_600_000);
  const endMs = performance.now() + 2_000;
  while (performance.now() < endMs) {
    renewal.refused();
    await sleep(5);
  }
  t.ok(gateway.asked.length <= 9, `${gateway.asked.length} in two seconds`);
});

t.test('a gateway that is away or busy is asked again soon', async (t) => {
  let status = 503;
  const gateway = await startGateway(t, () => ({ status }));
  const { renewed, said } = renewing(t, gateway.url, -1);
  await until('several asks', () => gateway.asked.length >= 5);
  status = 200;
  await until('new ones', () => renewed.length === 1);
  t.match(said(), [{ fields: { kind: 'away', reason: 'the gateway answers 503' } }]);
});

t.test('an answer of another cluster, or of no Longshore, is a refusal', async (t) => {
  for (const [given, reason] of [
    [{ status: 200, cluster: 'c2' }, /another cluster answers at LONGSHORE_URL/],
    [{ status: 404 }, /answers 404/],
  ] as const) {
    const gateway = await startGateway(t, () => given);
    const { renewed, said } = renewing(t, gateway.url, -1);
    await until('a line', () => said().length > 0);
    t.match(said(), [{ fields: { kind: 'refused', reason } }]);
    t.same(renewed, []);
  }
});
