/** Signatures by OpenSSL in place of the library's own. */
import { jwtAuthenticator as libraryAuthenticator } from '@nats-io/transport-node';
import { createAccount, createUser, fromPublic } from '@nats-io/nkeys';
import t from 'tap';
import { jwtAuthenticator, quickPair } from '../../../lib/nats/quick-pair.ts';

t.test('a connection says what the library would say: Ed25519 signatures have no randomness', (t) => {
  const seed = createUser().getSeed();
  for (const nonce of ['dGhlIG5vbmNl', 'ä']) {
    t.same(jwtAuthenticator(() => 'a.b.c', seed)(nonce), libraryAuthenticator('a.b.c', seed)(nonce));
  }
  t.end();
});

t.test('the JWT is read at each connection', (t) => {
  let jwt = 'first';
  const authenticate = jwtAuthenticator(() => jwt, createUser().getSeed());
  t.match(authenticate('nonce'), { jwt: 'first' });
  jwt = 'second';
  t.match(authenticate('nonce'), { jwt: 'second' });
  t.end();
});

t.test('a signature verifies under the public key, and only for its own bytes', (t) => {
  const account = createAccount();
  const pair = quickPair(account.getSeed());
  t.equal(pair.getPublicKey(), account.getPublicKey());
  const signature = pair.sign(Buffer.from('claims'));
  const verifier = fromPublic(account.getPublicKey());
  t.ok(verifier.verify(Buffer.from('claims'), signature));
  t.notOk(verifier.verify(Buffer.from('other claims'), signature));
  t.end();
});
