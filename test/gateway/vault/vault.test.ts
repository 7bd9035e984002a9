/** Secrets at rest: what opens them, and everything that must not. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { parseVaultKeys, SealError, Vault, type VaultKey } from '../../../gateway/vault/vault.ts';
import { ConfigurationError } from '../../../lib/config.ts';
import type { NetworkName, PeerId, TenantId } from '../../../schemas/ids.ts';
import type { Sealed, SecretPlace } from '../../../schemas/records/sealed.ts';

const newKey = (id: string): VaultKey => ({ id, key: randomBytes(32) });
const place: SecretPlace = {
  of: 'peer',
  tenant: 'acme' as TenantId,
  peer: '01890a5d-ac96-774b-bcce-b302099a8057' as PeerId,
  field: 'wireguard',
};
const network = 'demo' as NetworkName;
const tenant = 'acme' as TenantId;

/** Reason why it does not open; `undefined` if it does. */
function whyClosed(vault: Vault, at: SecretPlace, sealed: string): SealError['why'] | undefined {
  try {
    vault.open(at, sealed as Sealed);
    return undefined;
  } catch (error) {
    if (error instanceof SealError) return error.why;
    throw error;
  }
}

t.test('any text comes back, and is sealed differently each time', (t) => {
  const vault = new Vault([newKey('a')]);
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (secret) => {
      const [one, other] = [vault.seal(place, secret), vault.seal(place, secret)];
      return one !== other && vault.open(place, one) === secret && vault.open(place, other) === secret;
    }),
  );
  const sealed = vault.seal(place, 'secret');
  t.match(sealed, /^v1\.a\.[A-Za-z0-9_-]{80}\.[A-Za-z0-9_-]{46}$/);
  t.notMatch(Buffer.from(sealed.split('.')[3] ?? '', 'base64url').toString('latin1'), 'secret');
  t.end();
});

t.test('a change of any character closes it', (t) => {
  const vault = new Vault([newKey('first-key'), newKey('first-keX')]);
  const sealed = vault.seal(place, 'x'.repeat(31));
  const opened: string[] = [];
  const unknown = new Set<number>();
  for (let at = 0; at < sealed.length; at++) {
    for (const other of ['A', 'B', 'Q', 'g', '9', '_', '.', '=', ' ', 'X']) {
      if (sealed[at] === other) continue;
      const why = whyClosed(vault, place, sealed.slice(0, at) + other + sealed.slice(at + 1));
      if (why === undefined) opened.push(`${at} ${other}`);
      if (why === 'unknown_key') unknown.add(at);
    }
  }
  t.same(opened, []);
  t.same([...unknown], [3, 4, 5, 6, 7, 8, 9, 10, 11], 'only the key id names a key');
  for (let length = 0; length < sealed.length; length++) {
    t.equal(whyClosed(vault, place, sealed.slice(0, length)), 'damaged', `cut to ${length}`);
  }
  for (const more of ['A', '.', '.AAAA', '\n', '=']) t.equal(whyClosed(vault, place, sealed + more), 'damaged', more);
  t.equal(whyClosed(vault, place, ''), 'damaged');
  t.end();
});

t.test('parts of two seals do not make a third', (t) => {
  const vault = new Vault([newKey('a')]);
  const [one, other] = [vault.seal(place, 'one').split('.'), vault.seal(place, 'two').split('.')];
  t.equal(whyClosed(vault, place, [one[0], one[1], one[2], other[3]].join('.')), 'damaged');
  t.equal(whyClosed(vault, place, [one[0], one[1], other[2], one[3]].join('.')), 'damaged');
  t.end();
});

t.test('bytes come back as they are', (t) => {
  const vault = new Vault([newKey('a')]);
  const bytes = randomBytes(65_536);
  t.ok(vault.openBytes(place, vault.seal(place, bytes)).equals(bytes));
  t.end();
});

t.test('a secret opens in its own place alone', (t) => {
  const vault = new Vault([newKey('a')]);
  const places: SecretPlace[] = [
    place,
    { ...place, field: 'preshared' },
    { ...place, field: 'certificate' },
    { ...place, field: 'password' },
    { ...place, tenant: 'acme2' as TenantId },
    { ...place, peer: '01890a5d-ac96-774b-bcce-b302099a8058' as PeerId },
    { of: 'network', network, field: 'wireguard' },
    { of: 'network', network, field: 'ca' },
    { of: 'network', network, field: 'server' },
    { of: 'network', network: 'demo2' as NetworkName, field: 'ca' },
    { of: 'secret', tenant, name: 'db', version: 1 },
    { of: 'secret', tenant, name: 'db', version: 2 },
    { of: 'secret', tenant, name: 'db2', version: 1 },
    { of: 'secret', tenant: 'acme2' as TenantId, name: 'db', version: 1 },
    { of: 'login', tenant, registry: 'db', version: 1 },
    { of: 'login', tenant, registry: 'registry.example:5000', version: 1 },
    { of: 'login', tenant, registry: 'registry.example:5000', version: 2 },
  ];
  for (const [index, from] of places.entries()) {
    const sealed = vault.seal(from, 'secret');
    const opening = places.flatMap((to, at) => (whyClosed(vault, to, sealed) === undefined ? [at] : []));
    t.same(opening, [index], JSON.stringify(from));
    for (const to of places.filter((other) => other !== from)) {
      t.throws(() => vault.reseal(to, sealed), SealError, 'nor is it moved by a new key');
    }
  }
  t.end();
});

t.test('a new key takes over without a moment in which a secret does not open', (t) => {
  const [old, next] = [newKey('old'), newKey('new')];
  const before = new Vault([old]);
  const both = new Vault([old, next]);
  const moving = new Vault([next, old]);
  const after = new Vault([next]);
  t.same(
    [before, both, moving, after].map((vault) => vault.currentKeyId),
    ['old', 'old', 'new', 'new'],
  );

  const sealed = before.seal(place, 'secret');
  for (const vault of [before, both, moving]) t.equal(vault.open(place, sealed), 'secret');
  t.equal(whyClosed(after, place, sealed), 'unknown_key');
  t.throws(() => after.reseal(place, sealed), { name: 'SealError', why: 'unknown_key' });

  const moved = moving.reseal(place, sealed);
  t.match(moved, /^v1\.new\./);
  t.equal(moved.split('.')[3], sealed.split('.')[3], 'the secret itself is not touched');
  for (const vault of [both, moving, after]) t.equal(vault.open(place, moved), 'secret');
  t.equal(whyClosed(before, place, moved), 'unknown_key');
  t.equal(whyClosed(new Vault([newKey('new')]), place, moved), 'damaged', 'another key of the same id');
  t.equal(after.open(place, after.reseal(place, moved)), 'secret', 'twice');
  t.end();
});

t.test('the key file', (t) => {
  const [one, two] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
  const keys = parseVaultKeys(`# made today\r\n\n  k_1-A:${one}  \nold: ${two}\n#x:${one}\n`);
  t.same(
    keys.map(({ id, key }) => [id, Buffer.from(key).toString('base64')]),
    [
      ['k_1-A', one],
      ['old', two],
    ],
  );
  const rows: [text: string, faults: RegExp[]][] = [
    ['', [/there is none/]],
    ['# nothing\n', [/there is none/]],
    [one, [/line 1: must be <id>/]],
    [`a b:${one}`, [/line 1: must be <id>/]],
    [`${'a'.repeat(33)}:${one}`, [/line 1/]],
    [`a:${one.slice(0, -1)}`, [/line 1: must hold 32 bytes/]],
    [`a:${randomBytes(31).toString('base64')}`, [/line 1: must hold 32 bytes/]],
    [`a:${randomBytes(33).toString('base64')}`, [/line 1: must hold 32 bytes/]],
    [`a:${randomBytes(32).toString('hex')}`, [/line 1: must hold 32 bytes/]],
    [`a:${one}\na:${two}`, [/line 2: has the id of another line/]],
    [`a:${one} b`, [/line 1: must be <id>/]],
    [`\n\na:!\nb:${one}\nc`, [/line 3/, /line 5/]],
  ];
  for (const [text, faults] of rows) {
    try {
      parseVaultKeys(text);
      t.fail(`${text} was taken`);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      t.equal(error.faults.length, faults.length, error.message);
      for (const [index, fault] of faults.entries()) t.match(error.faults[index], fault);
      for (const piece of text.match(/[A-Za-z0-9+/]{8,}/g) ?? []) t.notMatch(error.message, piece, 'no key is told');
    }
  }
  t.throws(() => new Vault([]));
  t.end();
});

t.test('an error tells of no secret', (t) => {
  const vault = new Vault([newKey('a')]);
  const sealed = `${vault.seal(place, 'hunter2')}A` as Sealed;
  try {
    vault.open(place, sealed);
    t.fail('it opened');
  } catch (error) {
    const text = JSON.stringify({ ...(error as Error), stack: (error as Error).stack });
    t.notMatch(text, 'hunter2');
    t.notMatch(text, sealed.slice(-20));
    t.equal((error as Error).cause, undefined);
  }
  t.end();
});
