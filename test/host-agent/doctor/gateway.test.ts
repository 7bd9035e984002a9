import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { askGateway, judgeClock, judgeGateway, type GatewayFacts } from '../../../host-agent/doctor/gateway.ts';

const answered = (status: number, aheadMs?: number): GatewayFacts => ({
  kind: 'answered',
  status,
  location: status === 308 ? 'https://other' : undefined,
  aheadMs,
});
const unreached = (why: string): GatewayFacts => ({ kind: 'unreached', why });

const gateways: readonly [name: string, facts: GatewayFacts, before: string, after: string, words: RegExp][] = [
  ['ready', answered(200), 'ok', 'ok', /is ready/],
  ['not ready', answered(503), 'warn', 'warn', /not ready/],
  ['redirects', answered(308), 'fail', 'warn', /redirects to https:\/\/other/],
  ['another server', answered(404), 'fail', 'warn', /answers 404/],
  ['no name', unreached('getaddrinfo ENOTFOUND g'), 'fail', 'warn', /DNS/],
  ['another certificate', unreached('unable to verify the first certificate'), 'fail', 'warn', /NODE_EXTRA_CA_CERTS/],
  ['no way', unreached('connect ECONNREFUSED'), 'fail', 'warn', /open the way/],
];
for (const [name, facts, before, after, words] of gateways) {
  t.test(`gateway: ${name}`, (t) => {
    const first = judgeGateway(facts, 'http://g', false);
    t.equal(first.verdict, before, 'before the host has joined');
    t.match(`${first.says} ${first.remedy}`, words);
    t.equal(judgeGateway(facts, 'http://g', true).verdict, after, 'after');
    t.end();
  });
}

const clocks: readonly [name: string, facts: GatewayFacts, issuedMs: number | undefined, expected: object][] = [
  ['in time', answered(200, -1500), 900_000, { verdict: 'ok' }],
  ['a little ahead', answered(200, 20_000), undefined, { verdict: 'warn', says: /^20 s ahead/ }],
  ['far behind', answered(200, -600_000), undefined, { verdict: 'fail', says: /^10 minutes behind/ }],
  ['with credentials from the future', unreached('x'), 1_060_000, { verdict: 'fail', says: /60 s behind.*future/ }],
  ['not compared', unreached('x'), 900_000, { verdict: 'warn', says: /not compared/ }],
  ['an answer without a time', answered(200), undefined, { verdict: 'warn' }],
];
for (const [name, facts, issuedMs, expected] of clocks) {
  t.test(`clock: ${name}`, (t) => {
    t.match(judgeClock(facts, issuedMs, 1_000_000), expected);
    t.end();
  });
}

t.test('reads status, place and time of an answer', async (t) => {
  const server = createServer((request, response) => {
    t.equal(request.url, '/readyz');
    response.writeHead(302, { location: '/there', date: new Date(1_000_000_000).toUTCString() }).end('x'.repeat(1000));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const facts = await askGateway(url, () => 1_000_030_500, 60_000);
  t.same(facts, { kind: 'answered', status: 302, location: '/there', aheadMs: 30_000 });
  await new Promise((resolve) => server.close(resolve));
  t.match(await askGateway(url, () => 0, 60_000), { kind: 'unreached', why: /ECONNREFUSED/ });
});
