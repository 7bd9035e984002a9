import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { issueCa } from '../../../gateway/vpn/pki/x509.ts';
import { VpnKeys } from '../../../host-agent/secrets/vpn-keys.ts';
import type { KeyValue } from '../../../host-agent/secrets/values.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import { days } from '../../../schemas/limits/units.ts';
import { quietLog } from '../../actors/support.ts';

const network = 'office' as NetworkName;
const withIke = (serial: string): KeyValue => ({
  kind: 'key',
  key: { key: 'secret', ike: { id: 'vpn.example.com', certificate: `certificate ${serial}`, serial } },
});

t.test('a certificate that is replaced serves until the other one is here, which is asked for once', async (t) => {
  let given = withIke('1a');
  let asked = 0;
  let came = 0;
  const keys = new VpnKeys({
    values: {
      vpnKey: () => {
        asked++;
        return Promise.resolve(given);
      },
    },
    nowMs: Date.now,
    log: quietLog,
  });
  const want = async (certificate: string): Promise<string | undefined> => {
    keys.want(new Map([['public', { network, certificate }]]), () => came++);
    await keys.tried(1000);
    return keys.of('public')?.ike.serial;
  };
  t.equal(await want('1a'), '1a');
  t.equal(await want('1a'), '1a');
  t.same([asked, came], [1, 1]);
  t.equal(await want('2b'), '1a', 'the gateway does not have it yet');
  t.same([asked, came], [2, 1], 'and what came is no news');
  given = withIke('2b');
  t.equal(await want('2b'), '2b');
  t.same([asked, came], [3, 2]);
});

t.test('keys for which the control plane does not answer are asked for until the time is over', async (t) => {
  const answers: KeyValue[] = [
    { kind: 'missing', why: 'no connection', isFinal: false },
    { kind: 'missing', why: 'no connection', isFinal: false },
    withIke('1a'),
  ];
  const refused: KeyValue = { kind: 'missing', why: 'not of this host', isFinal: true };
  const keys = new VpnKeys({
    values: { vpnKey: () => Promise.resolve(answers.shift() ?? refused) },
    nowMs: Date.now,
    log: quietLog,
  });
  let came = 0;
  keys.want(new Map([['public', { network }]]), () => came++);
  await keys.tried(60_000);
  t.equal(keys.of('public')?.key, 'secret');
  t.equal(came, 1);
  keys.want(new Map([['other', { network }]]), () => came++);
  await keys.tried(60_000);
  t.equal(keys.why, 'not of this host', 'one that is refused ends the wait');
});

t.test('a certificate near its end is asked for once a day, and serves meanwhile', async (t) => {
  const privateKeyPem = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  });
  const start = Date.parse('2030-01-01T00:00:00Z');
  const pemUntil = (notAfterMs: number, serial: string): string =>
    issueCa({ network, notBeforeMs: start, notAfterMs, serial, privateKeyPem: privateKeyPem.toString() });
  const keyUntil = (notAfterMs: number, serial: string): KeyValue => ({
    kind: 'key',
    key: { key: 'secret', ike: { id: 'vpn.example.com', certificate: pemUntil(notAfterMs, serial), serial } },
  });
  let nowMs = start;
  let given: KeyValue = keyUntil(start + 90 * days, '1a');
  const asked: boolean[] = [];
  let came = 0;
  const keys = new VpnKeys({
    values: {
      vpnKey: (_key, of) => {
        asked.push('isRenewal' in of);
        return Promise.resolve(given);
      },
    },
    nowMs: () => nowMs,
    log: quietLog,
  });
  const want = async (certificate: string): Promise<string | undefined> => {
    keys.want(new Map([['public', { network, certificate }]]), () => came++);
    await keys.tried(1000);
    return keys.of('public')?.ike.serial;
  };
  await want('1a');
  nowMs = start + 60 * days - 1;
  await want('1a');
  t.same(asked, [false], 'not yet');
  for (const given of [nowMs + 1, nowMs + 2, nowMs + 1 + days]) {
    nowMs = given;
    t.equal(await want('1a'), '1a');
  }
  t.same(asked, [false, true, true], 'once a day, while it is not renewed');
  given = { kind: 'missing', why: 'away', isFinal: false };
  nowMs += days;
  t.equal(await want('1a'), '1a');
  t.equal(keys.why, undefined, 'nothing is lacking');
  given = keyUntil(start + 900 * days, '2b');
  t.equal(await want('2b'), '2b', 'its owner says that there is another one');
  nowMs += days;
  await want('2b');
  t.same(asked, [false, true, true, true, false]);
  t.equal(came, 2);
});
