/** An issuer's keys from a file and from a URL, through changes and outages. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { limits } from '../../../schemas/limits.ts';
import { until } from '../../support/until.ts';
import { createKey, nowS } from '../tokens.ts';
import { stage } from './support.ts';
import { jwksBytes, jwksBackoffMaxMs } from '../../../gateway/auth/keys.ts';

/** A JWKS server that a test can make fail. */
async function jwksServer(t: Test, body: () => { status: number; text: string }) {
  let fetches = 0;
  const server: Server = createServer((_request, response) => {
    fetches++;
    const { status, text } = body();
    response.writeHead(status).end(text);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/jwks`, server, port, fetches: () => fetches };
}

t.test('keys from a URL: fetched once, renewed, kept through an outage', async (t) => {
  const published = { status: 200, text: '{"keys":[]}' };
  const server = await jwksServer(t, () => published);
  const { issuer, verdictOf, clock, keys } = await stage(t, {
    source: () => ({ kind: 'url', url: server.url }),
    start: false,
  });
  const publish = (...of: readonly { jwk: unknown }[]): void => {
    published.text = JSON.stringify({ keys: of.map(({ jwk }) => jwk) });
  };
  publish(issuer.keys.EdDSA);
  await keys.start();
  t.equal(await verdictOf(await issuer.mint()), 'identity acme');
  t.equal(server.fetches(), 1);

  // A key that was not there yet: asked for again, but not at every such token.
  const newer = await createKey('EdDSA');
  const rotated = await issuer.mint({}, { key: newer });
  t.equal(await verdictOf(rotated), 'refused unknown key');
  t.equal(server.fetches(), 1, 'the set is fresh');
  clock.advance(limits.jwksUnknownKidMs + 1);
  publish(issuer.keys.EdDSA, newer);
  t.equal(await verdictOf(rotated), 'identity acme');
  t.equal(server.fetches(), 2);
  const strangers = await Promise.all(
    Array.from({ length: 20 }, async () => issuer.mint({}, { key: await createKey('EdDSA') })),
  );
  for (const stranger of strangers) t.equal(await verdictOf(stranger), 'refused unknown key');
  t.equal(server.fetches(), 2, 'strangers cost the issuer nothing');

  // An outage: known keys still verify, a new key is 503, and the issuer is not asked for a while.
  published.status = 500;
  clock.advance(limits.jwksUnknownKidMs + 1);
  const [stranger = ''] = strangers;
  t.equal(await verdictOf(stranger), 'unavailable the keys of the issuer');
  t.equal(await verdictOf(stranger), 'unavailable the keys of the issuer');
  t.equal(server.fetches(), 3, 'within the back-off');
  t.equal(await verdictOf(await issuer.mint({ sub: 'another' })), 'identity acme', 'the last good keys are kept');
  published.text = 'not JSON';
  published.status = 200;
  clock.advance(jwksBackoffMaxMs);
  t.equal(await verdictOf(stranger), 'unavailable the keys of the issuer', 'rubbish is an outage too');
  publish(issuer.keys.EdDSA);
  clock.advance(jwksBackoffMaxMs);
  t.equal(await verdictOf(stranger), 'refused unknown key', 'back again');
});

t.test('without keys a token is 503, or 401 if it is refused without a key; then keys are fetched', async (t) => {
  const answer = { status: 503, text: '' };
  const server = await jwksServer(t, () => answer);
  const { issuer, verdictOf, keys, clock } = await stage(t, {
    source: () => ({ kind: 'url', url: server.url }),
    start: false,
  });
  await keys.start();
  t.notOk(keys.loaded());
  t.equal(await verdictOf(await issuer.mint()), 'unavailable the keys of the issuer');
  t.equal(await verdictOf(await issuer.mint({ exp: nowS() - 10 })), 'refused expired');
  t.equal(await verdictOf(await issuer.mint({ iss: 'x' })), 'refused issuer');
  answer.text = JSON.stringify({ keys: [issuer.keys.EdDSA.jwk] });
  answer.status = 200;
  clock.advance(jwksBackoffMaxMs);
  await until('fetched in the background', () => keys.loaded());
  t.equal(await verdictOf(await issuer.mint()), 'identity acme');
});

t.test('a server that never answers, redirects, or sends too much is an outage', async (t) => {
  const answer = { status: 302, text: 'x' };
  const server = await jwksServer(t, () => answer);
  const { keys, clock } = await stage(t, { source: () => ({ kind: 'url', url: server.url }), start: false });
  t.match(await keys.find('k', 'EdDSA'), { kind: 'unavailable' });
  answer.status = 200;
  answer.text = JSON.stringify({ keys: [{ kid: 'k', kty: 'OKP', crv: 'Ed25519', x: 'x'.repeat(jwksBytes) }] });
  clock.advance(jwksBackoffMaxMs);
  t.match(await keys.find('k', 'EdDSA'), { kind: 'unavailable' });
  answer.text = JSON.stringify({ keys: [{ kid: 'k', kty: 'OKP', crv: 'Ed25519', x: '!' }, 7, null, {}] });
  clock.advance(jwksBackoffMaxMs);
  t.match(await keys.find('k', 'EdDSA'), { kind: 'unknown' }, 'a damaged key is none');
});

t.test('keys from a file are reloaded when it changes, and kept when it is damaged', async (t) => {
  const { issuer, verdictOf, keys } = await stage(t);
  const newer = await createKey('ES256');
  const token = await issuer.mint({}, { key: newer });
  t.equal(await verdictOf(token), 'refused unknown key');
  issuer.writeJwks([issuer.keys.EdDSA, newer]);
  t.equal(await verdictOf(token), 'identity acme', 'read again for an unknown key');
  writeFileSync(issuer.jwksFile, '{');
  t.match(await keys.find('nope', 'EdDSA'), { kind: 'unavailable' });
  t.equal(await verdictOf(await issuer.mint({ sub: 'x' })), 'identity acme');
  t.match(await stage(t, { source: ({ jwksFile }) => ({ kind: 'file', path: join(jwksFile, 'no') }) }), {
    keys: { loaded: Function },
  });
});
