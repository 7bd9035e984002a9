import t from 'tap';
import { judgeNats, type NatsFacts } from '../../../host-agent/doctor/nats.ts';

const connected = (heard: 'enrolled' | 'fenced' | 'nothing'): NatsFacts => ({
  kind: 'connected',
  server: 'n1:4222',
  roundTripMs: 2,
  heard,
});
const cases: readonly [name: string, facts: NatsFacts, verdicts: string[], words: RegExp][] = [
  ['the enrolled key', connected('enrolled'), ['ok', 'ok'], /it is the enrolled one/],
  ['a host that was removed', connected('fenced'), ['ok', 'fail'], /was removed/],
  ['no answer', connected('nothing'), ['ok', 'fail'], /no actors process serves, or another key was enrolled/],
  ['credentials that are refused', { kind: 'refused', why: 'Authorization Violation' }, ['fail'], /make a join token/],
  [
    'no certificate',
    { kind: 'refused', why: 'unable to verify the first certificate' },
    ['fail'],
    /NATS_CA_FILE to the authority/,
  ],
  ['TLS on one side', { kind: 'refused', why: 'read ECONNRESET' }, ['fail'], /handshake_first/],
  ['no server', { kind: 'refused', why: 'connect ECONNREFUSED 10.0.0.1:4222' }, ['fail'], /open port 4222/],
];
for (const [name, facts, verdicts, words] of cases) {
  t.test(name, (t) => {
    const findings = judgeNats(facts, ['nats://n1:4222']);
    t.same(
      findings.map(({ verdict }) => verdict),
      verdicts,
    );
    t.match(findings.map(({ says, remedy }) => `${says} ${remedy}`).join(' '), words);
    t.end();
  });
}
