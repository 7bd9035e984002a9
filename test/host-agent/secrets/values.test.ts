import { createCurve } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import type { Needed, Unsealed } from '../../../host-agent/link/unseal.ts';
import type { VpnKeyOf } from '../../../host-agent/network/vpn.ts';
import { openSealedCache, type SealedKey } from '../../../host-agent/secrets/sealed-cache.ts';
import { sealKeyOf } from '../../../host-agent/secrets/seal-key.ts';
import { createValues } from '../../../host-agent/secrets/values.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import { newWireguardKeys } from '../../../lib/wireguard-keys.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { container, id, tenant } from '../support/decisions.ts';
import { seal, secretOf } from '../support/secrets/sealing.ts';

const who = { tenant, id };
const use = { name: 'db', version: 1 };
const ofSecret: SealedKey = { tenant, secret: use };
const registry = 'r.example';
const away: Unsealed = { kind: 'unavailable', message: 'away' };

/** Values whose control plane says what the test sets. */
async function valuesOf(t: Test, first: Unsealed | ((key: string) => Unsealed) = away) {
  const key = sealKeyOf(createCurve());
  const sealedCache = await openSealedCache(temporaryFolder(t), quietLog);
  const asked: (Needed | VpnKeyOf)[] = [];
  const results: string[] = [];
  let answer = typeof first === 'function' ? first(key.publicKey) : first;
  const values = createValues({
    key,
    sealedCache,
    unseal: (what) => {
      asked.push(what);
      return Promise.resolve(answer);
    },
    metrics: { unseal: (result) => void results.push(result) },
    log: quietLog,
  });
  const boxOf = (value: object): Unsealed => ({ kind: 'box', box: seal(value, key.publicKey) });
  return { key, sealedCache, values, asked, results, boxOf, say: (next: Unsealed) => (answer = next) };
}

t.test('a secret is asked for once, and then opened from the disk', async (t) => {
  const { values, asked, sealedCache, boxOf, say } = await valuesOf(t);
  say(boxOf(secretOf('hunter2')));
  t.match(await values.secret(who, use), { kind: 'value', bytes: Buffer.from('hunter2') });
  t.notMatch(await sealedCache.get(ofSecret), 'hunter2');
  say(away);
  t.match(await values.secret(who, use), { kind: 'value', bytes: Buffer.from('hunter2') });
  t.equal(asked.length, 1);
  t.match(await values.secret(who, { ...use, version: 2 }), { kind: 'missing', secret: 'db', why: 'away' });
});

t.test('a damaged box is dropped, and asked for again', async (t) => {
  const { values, asked, sealedCache, results, boxOf, say } = await valuesOf(t);
  await sealedCache.put(ofSecret, 'damaged');
  t.match(await values.secret(who, use), { kind: 'missing' });
  t.equal(await sealedCache.get(ofSecret), undefined);
  await sealedCache.put(ofSecret, seal({ value: 7 }, createCurve().getPublicKey()));
  say(boxOf(secretOf('new')));
  t.match(await values.secret(who, use), { kind: 'value', bytes: Buffer.from('new') });
  t.equal(asked.length, 2);
  t.same(results, ['damaged', 'damaged']);
});

t.test('a value that cannot be opened is not kept', async (t) => {
  const { values, sealedCache, boxOf, say } = await valuesOf(t);
  for (const answer of [{ kind: 'box', box: 'nonsense' } as const, boxOf({ no: 'value' })]) {
    say(answer);
    t.match(await values.secret(who, use), { kind: 'missing', why: /cannot be opened/ });
    t.match(await values.login(who, registry), { kind: 'unknown' });
  }
  say({ kind: 'box', box: null });
  t.match(await values.secret(who, use), { kind: 'missing', why: /does not have it/ });
  say({ kind: 'refused', message: 'not here' });
  t.match(await values.secret(who, use), { kind: 'missing', why: 'not here' });
  t.equal(await sealedCache.get(ofSecret), undefined);
});

t.test('an environment has all of its values, or names the one that is missing', async (t) => {
  const { values, sealedCache, key } = await valuesOf(t);
  const keep = (name: string, value: string | Uint8Array) =>
    sealedCache.put({ tenant, secret: { name, version: 1 } }, seal(secretOf(value), key.publicKey));
  await keep('a', 'één');
  await keep('empty', '');
  await keep('binary', Buffer.from([0xff, 0xfe]));
  await keep('nul', 'a\0b');
  const env = (uses: Record<string, string>) => {
    const named = Object.entries(uses).map(([variable, name]) => [variable, { name, version: 1 }] as const);
    return values.env(container({ secrets: { env: Object.fromEntries(named), files: {} } }));
  };
  t.same(await env({ A: 'a', E: 'empty' }), { kind: 'env', env: { A: 'één', E: '' } });
  t.same(await values.env(container()), { kind: 'env', env: {} });
  const odd = await env(Object.fromEntries([['__proto__', 'a']]));
  t.same('env' in odd && Object.entries(odd.env), [['__proto__', 'één']], 'a name that objects know');
  t.match(await env({ A: 'a', N: 'nowhere' }), { kind: 'missing', secret: 'nowhere', why: 'away' });
  for (const name of ['binary', 'nul'])
    t.match(await env({ A: name }), { kind: 'missing', secret: name, why: /no text/ });
});

t.test('a login is asked for each time; the disk serves while nobody answers', async (t) => {
  const { values, sealedCache, asked, boxOf, say } = await valuesOf(t);
  const login = (password: string, version: number) => ({ username: 'u', password, version });
  t.same(await values.login(who, registry), { kind: 'unknown' });
  for (const each of [login('one', 1), login('two', 2)]) {
    say(boxOf(each));
    t.same(await values.login(who, registry), { kind: 'login', login: each, isCurrent: true });
  }
  say(away);
  t.same(await values.login(who, registry), { kind: 'login', login: login('two', 2), isCurrent: false });
  t.same(await values.login(who, 'other.example'), { kind: 'unknown' });
  say({ kind: 'refused', message: 'not here' });
  t.same(await values.login(who, registry), { kind: 'unknown' }, 'one that is refused is no longer used');
  say({ kind: 'box', box: null });
  t.same(await values.login(who, registry), { kind: 'none' });
  t.equal(await sealedCache.get({ tenant, registry }), undefined, 'a login that was deleted goes');
  say(away);
  t.same(await values.login(who, registry), { kind: 'unknown' });
  t.equal(asked.length, 8);
});

t.test('the key of a VPN network is asked for again when its certificate is another one', async (t) => {
  const { values, asked, boxOf, say } = await valuesOf(t);
  const { publicKey, privateKey: key } = newWireguardKeys();
  const network = 'office' as NetworkName;
  const withIke = (serial: string) => ({ key, ike: { id: 'vpn.example.com', certificate: serial, serial } });
  for (const serial of ['1a', '2b']) {
    say(boxOf(withIke(serial)));
    const known = { kind: 'key', key: withIke(serial) };
    t.same(await values.vpnKey(publicKey, { network, certificate: serial }), known);
    say(away);
    t.same(await values.vpnKey(publicKey, { network, certificate: serial }), known, 'once');
    t.same(await values.vpnKey(publicKey, { network, certificate: '3c' }), known, 'what it has serves meanwhile');
  }
  t.same(
    asked,
    Array.from({ length: 4 }, () => ({ network })),
    'the ask names no certificate',
  );
});
