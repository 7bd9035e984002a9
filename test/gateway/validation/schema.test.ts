import t from 'tap';
import Type from 'typebox';
import { validateNetworkPut } from '../../../gateway/validation/network.ts';
import { validatePeerCreate } from '../../../gateway/validation/peer.ts';
import { defaultOf } from '../../../gateway/validation/schema.ts';
import { limits } from '../../../schemas/limits.ts';

const nowMs = Date.UTC(2026, 5, 1);

type Faults = Readonly<Record<string, readonly string[]>>;
const faultsOf = (valid: { ok: true } | { ok: false; faults: Faults }): Faults => (valid.ok ? {} : valid.faults);

t.test('a list of a whole body’s length is told to be too long, in few words', (t) => {
  const items = Array.from({ length: 160_000 }, () => '');
  const peer = faultsOf(validatePeerCreate({ name: 'a', routes: items, dns: items }, nowMs));
  t.strictSame(peer['routes'], [`must be at most ${limits.networkRoutes} items`, 'must be distinct']);
  t.strictSame(peer['dns'], [`must be at most ${limits.networkDns} items`, 'must be distinct']);
  const settings = { endpoint: 'a.example', ipv4_pool: '10.0.0.0/24' };
  const tenants = Array.from(items, () => 'acme');
  const ofTenants = faultsOf(validateNetworkPut({ ...settings, tenants }));
  t.strictSame(ofTenants, { tenants: [`must be at most ${limits.networkTenants} items`, 'must be distinct'] });
  const proxy = { host: 'p.example', port: 1, domains: tenants, exclude: items };
  const ofProxy = faultsOf(validateNetworkPut({ ...settings, proxy }));
  t.strictSame(ofProxy['proxy.domains'], [`must be at most ${limits.proxyDomains} items`]);
  t.ok('proxy.exclude.0' in ofProxy);
  for (const faults of [peer, ofProxy]) t.ok(Object.keys(faults).length < 1000, 'not a word for each item');
  t.end();
});

t.test('a body that is nested deeper than a stack is merely of the wrong kind', (t) => {
  const deep: unknown = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`);
  t.same(faultsOf(validatePeerCreate({ name: deep }, nowMs)), { name: ['must be a string'] });
  t.same(faultsOf(validatePeerCreate({ name: 'a', routes: [deep] }, nowMs)), { 'routes.0': ['must be a string'] });
  t.end();
});

t.test('a default is read from its schema', (t) => {
  t.equal(defaultOf(Type.String({ default: 'latest' })), 'latest');
  t.same(defaultOf(Type.Array(Type.String(), { default: [] })), []);
  t.end();
});

t.test('a schema without a default, or with one that it refuses itself, is a bug', (t) => {
  t.throws(() => defaultOf(Type.String()), /a default is missing or wrong/);
  t.throws(() => defaultOf(Type.Integer({ minimum: 1, default: 0 })), /a default is missing or wrong/);
  t.end();
});
