import t from 'tap';
import { judgePorts, localRange, portsIn } from '../../../host-agent/doctor/ports.ts';

t.test('ports of a table of sockets: those that listen', (t) => {
  const tcp = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid',
    '   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0',
    '   1: 0100007F:4E20 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0',
    '   2: 00000000000000000000000000000000:4E21 00000000000000000000000000000000:0000 07 0 0',
    '',
  ].join('\n');
  t.same(portsIn(tcp), [8080, 20_001]);
  t.same(portsIn(''), []);
  t.end();
});

const range = { first: 20_000, last: 20_099 };
const judge = (more: Partial<Parameters<typeof judgePorts>[0]>) =>
  judgePorts({ range, outgoing: { first: 32_768, last: 60_999 }, listening: [], published: new Set(), ...more });

t.test('a range of its own', (t) => {
  t.match(judge({ listening: [80, 20_100, 20_005], published: new Set([20_005]) }), [{ verdict: 'ok' }]);
  t.match(judge({ outgoing: undefined }), [{ verdict: 'ok' }]);
  t.end();
});

t.test('a range that others use', (t) => {
  t.match(judge({ outgoing: { first: 20_099, last: 60_999 } }), [
    { verdict: 'warn', says: /outgoing connections, 20099-60999/ },
  ]);
  t.match(judge({ listening: [20_007, 20_003, 20_007] }), [{ verdict: 'warn', says: /: 20003, 20007$/ }]);
  const many = Array.from({ length: 12 }, (_, at) => 20_000 + at);
  t.match(judge({ listening: many }), [{ says: /20007 and 4 more$/ }]);
  t.end();
});

t.test('ip_local_port_range', (t) => {
  t.same(localRange('32768\t60999\n'), { first: 32_768, last: 60_999 });
  t.equal(localRange(''), undefined);
  t.end();
});
