import t from 'tap';
import * as verdicts from '../../../cli/doctor/verdicts.ts';

const nowMs = Date.parse('2026-11-24T12:00:00Z');
const day = 86_400_000;
const says = ({ ok, found, todo }: verdicts.Verdict): string => {
  t.equal(ok, todo === undefined, 'what is wrong comes with what to do');
  return `${ok ? '✓' : '✗'} ${found}`;
};

t.test('verdicts', (t) => {
  const https = new URL('https://longshore.example.com');
  const rows: readonly (readonly [verdicts.Verdict, string])[] = [
    [verdicts.reachable(200, 12.4), '✓ answers in 12 ms'],
    [verdicts.reachable(502, 1), '✗ answers 502 at /healthz'],
    [verdicts.reachable('no answer: ECONNREFUSED', 1), '✗ no answer: ECONNREFUSED'],
    [verdicts.encrypted(https, nowMs + 60 * day, nowMs), '✓ the certificate ends in 60 days'],
    [verdicts.encrypted(https, nowMs + 13 * day, nowMs), '✗ the certificate ends in 13 days'],
    [verdicts.encrypted(https, 'certificate has expired', nowMs), '✗ certificate has expired'],
    [
      verdicts.encrypted(new URL('http://127.0.0.1:8080'), undefined, nowMs),
      '✓ none, and none is needed on this machine',
    ],
    [verdicts.encrypted(new URL('http://10.0.0.1'), undefined, nowMs), '✗ none: tokens can be read on the way'],
    [verdicts.inTime(undefined), '✓ the server does not say its time'],
    [verdicts.inTime(-999), '✓ the server has the time of this machine'],
    [verdicts.inTime(-2_000), '✓ the server is 2 s behind'],
    [verdicts.inTime(60_000), '✗ the server is 60 s ahead'],
    [verdicts.ready(200, ''), '✓ it serves requests'],
    [verdicts.ready(503, '{"error":"unavailable"}'), '✗ /readyz: 503 {"error":"unavailable"}'],
    [verdicts.sameRelease('0.2.3', '0.2.0-dev'), '✓ 0.2.3 at the server, 0.2.0-dev here'],
    [verdicts.sameRelease('0.3.0', '0.2.0'), '✗ 0.3.0 at the server, 0.2.0 here'],
    [verdicts.sameRelease('1.4.0', '1.2.0'), '✓ 1.4.0 at the server, 1.2.0 here'],
    [verdicts.signedIn(undefined, nowMs + day, nowMs), '✓ accepted, until 2026-11-25T12:00:00.000Z'],
    [verdicts.signedIn(undefined, nowMs - day, nowMs), '✗ ended at 2026-11-23T12:00:00.000Z'],
    [verdicts.signedIn('unauthenticated', undefined, nowMs), '✗ unauthenticated'],
    [verdicts.placed(2), '✓ 2 in your regions'],
    [verdicts.placed(0), '✗ none in your regions'],
  ];
  for (const [verdict, text] of rows) t.equal(says(verdict), text);
  t.end();
});

t.test('hosts: each that is not well', (t) => {
  type Host = Parameters<typeof verdicts.healthyHosts>[0][number];
  const host = (of: Partial<Host>) =>
    ({ key: 'h1', status: 'up', faults: [], last_heard_at: null, ...of }) as unknown as Host;
  t.match(verdicts.healthyHosts([]), [{ ok: false, found: 'there are none' }]);
  t.match(verdicts.healthyHosts([host({})]), [{ ok: true, found: '1, all up and without faults' }]);
  const faults = [{ kind: 'engine_old', message: 'Docker 19.03' }];
  const found = verdicts.healthyHosts([host({}), host({ key: 'h2', status: 'unknown' }), host({ key: 'h3', faults })]);
  t.match(found, [
    { name: 'host h2', ok: false, found: 'unknown, last heard at -' },
    { name: 'host h3', ok: false, found: 'engine_old: Docker 19.03' },
  ]);
  t.equal(found.length, 2);
  t.end();
});
