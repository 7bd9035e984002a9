import t from 'tap';
import { exportJWK, generateKeyPair } from 'jose';
import { parseJwks } from '../../../gateway/auth/jwks.ts';
import { createKey } from '../tokens.ts';

const setOf = (...keys: unknown[]): string => JSON.stringify({ keys });

t.test('a text that is not a key set is refused', (t) => {
  for (const text of ['', '{', '[]', '{}', '{"keys":{}}', 'null'])
    t.throws(() => parseJwks(text), /is not JSON|no list "keys"/, text);
  t.equal(parseJwks(setOf()).size, 0);
  t.equal(parseJwks(setOf({ kty: 'OKP' }, { kid: 'a' }, 7, null)).size, 0, 'a key needs an id and a type');
  t.end();
});

t.test('a key is found by its id, for its own algorithm and for signatures alone', async (t) => {
  const { jwk, kid } = await createKey('EdDSA');
  const found = (more: object) => parseJwks(setOf({ ...jwk, ...more })).find(kid, 'EdDSA') !== undefined;
  t.ok(found({}));
  t.ok(found({ alg: 'Ed25519' }), 'the name of RFC 9864');
  t.notOk(found({ use: 'enc' }));
  t.notOk(found({ alg: 'ES256' }));
  t.notOk(found({ crv: 'Ed448' }));
  const set = parseJwks(setOf(jwk));
  t.equal(set.find(kid, 'ES256'), undefined);
  t.equal(set.find('another', 'EdDSA'), undefined);
  t.equal(set.find(kid, 'EdDSA'), set.find(kid, 'EdDSA'), 'imported once');
});

t.test('a private key that was published by mistake still verifies', async (t) => {
  const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
  const key = await parseJwks(setOf({ ...(await exportJWK(privateKey)), kid: 'k' })).find('k', 'EdDSA');
  t.match(key, { type: 'public' });
});
