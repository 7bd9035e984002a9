import t from 'tap';
import { validatePeerCreate, validatePeerUpdate } from '../../../gateway/validation/peer.ts';
import { networkNamePattern } from '../../../schemas/words.ts';
import { label } from '../vpn/support.ts';

const nowMs = Date.UTC(2026, 5, 1);
const resolver = 'must be the address of a resolver, not an unspecified, loopback or multicast one';
const control = 'must not contain control or invisible characters';
const edge = 'must not begin or end with a space';
const notNetwork = 'must be a network in CIDR form, like 10.0.0.0/8, with no bits beyond its prefix';
const notAddress = 'must be an IPv4 or IPv6 address';
const time = 'must be an RFC 3339 time, like 2026-01-31T12:00:00Z';

type Faults = Readonly<Record<string, readonly string[]>>;
const faultsOf = (valid: { ok: true } | { ok: false; faults: Faults }): Faults => (valid.ok ? {} : valid.faults);

t.test('a peer is a name, and what the network says else', (t) => {
  t.same(validatePeerCreate({ name: 'phone' }, nowMs), {
    ok: true,
    value: { name: 'phone', network: null, expiresAtMs: null, routes: null, dns: null },
  });
  const full = {
    name: 'Ann’s phone 😀',
    network: 'demo',
    expires_at: '2026-06-01T02:00:00.5+01:00',
    routes: ['10.0.0.0/8', '2001:DB8:0::/32'],
    dns: ['9.9.9.9', '2001:DB8:0:0::1'],
  };
  t.same(validatePeerCreate(full, nowMs), {
    ok: true,
    value: {
      name: 'Ann’s phone 😀',
      network: 'demo',
      expiresAtMs: nowMs + 3_600_500,
      routes: ['10.0.0.0/8', '2001:db8::/32'],
      dns: ['9.9.9.9', '2001:db8::1'],
    },
  });
  const nothing = { name: 'a', network: null, expires_at: null, routes: null, dns: null };
  t.ok(validatePeerCreate(nothing, nowMs).ok, 'null is as if absent');
  t.end();
});

t.test('a change has what the body has', (t) => {
  t.same(validatePeerUpdate({}, nowMs), { ok: true, value: {} });
  const body = { name: 'b', enabled: false, expires_at: null, routes: null, dns: [] };
  t.same(validatePeerUpdate(body, nowMs), {
    ok: true,
    value: { name: 'b', enabled: false, expiresAtMs: null, routes: null, dns: [] },
  });
  t.same(faultsOf(validatePeerUpdate({ enabled: 1, network: 'x' }, nowMs)), {
    enabled: ['must be true or false'],
    network: ['is not known'],
  });
  t.end();
});

t.test('faults of a peer’s fields', (t) => {
  const table: readonly (readonly [field: string, value: unknown, faults: Faults])[] = [
    ['name', undefined, { name: ["can't be blank"] }],
    ['name', null, { name: ['must be a string'] }],
    ['name', 7, { name: ['must be a string'] }],
    ['name', '', { name: ["can't be blank"] }],
    ['name', '   ', { name: ["can't be blank"] }],
    ['name', ' a', { name: [edge] }],
    ['name', 'a\u00a0', { name: [edge] }],
    ['name', 'a b', {}],
    ['name', 'x'.repeat(64), {}],
    ['name', '\u{1F600}'.repeat(64), {}],
    ['name', '\u{1F600}'.repeat(65), { name: ['must be at most 64 characters'] }],
    ['name', '\u0645\u06CC\u200C\u062E\u0648\u0627\u0647\u0645', {}],
    ['name', '\u0DC1\u0DCA\u200D\u0DBB\u0DD3', {}],
    ['name', '\u0D05\u0D35\u0D28\u0D4D\u200D', {}],
    ['name', '\u0915\u094D\u200C\u0937', {}],
    ['name', '\u{1F469}\u200D\u{1F469}\u200D\u{1F467}', {}],
    ['name', '\u{1F469}\u{1F3FD}\u200D\u{1F4BB} \u2764\uFE0F\u200D\u{1F525}', {}],
    ['name', 'ad\u200Cmin', { name: [control] }],
    ['name', 'ad\u200Dmin', { name: [control] }],
    ['name', '\u200D', { name: [control] }],
    ['name', '\u0645\u200C', { name: [control] }],
    ['name', '\u0645\u200D\u0645', { name: [control] }],
    ['name', '\u{1F469}\u200C\u{1F467}', { name: [control] }],
    ['name', '1\u200D2', { name: [control] }],
    ['name', 'x'.repeat(65), { name: ['must be at most 64 characters'] }],
    ['name', '\u0958'.repeat(33), { name: ['must be at most 64 characters'] }],
    ['name', 'a\nb', { name: [control] }],
    ['name', '\u0000', { name: [control] }],
    ['name', 'a\u0085b', { name: [control] }],
    ['name', 'a\u2028b', { name: [control] }],
    ['name', 'a\u2029b', { name: [control] }],
    ['name', 'a\u202eb', { name: [control] }],
    ['name', 'a\u200bb', { name: [control] }],
    ['name', '\ufeffa', { name: [control] }],
    ['name', 'a\ud800', { name: [control] }],
    ['name', 'a\ue000', { name: [control] }],
    ['name', 'a\uffff', { name: [control] }],
    ['name', 'a\u0378', { name: [control] }],
    ['name', '</script>"\'`$(x)\\', {}],
    ['network', 'demo', {}],
    ['network', 'Demo', { network: [`must match ${networkNamePattern}`] }],
    ['network', '-', { network: [`must match ${networkNamePattern}`] }],
    ['network', 7, { network: ['must be a string'] }],
    ['expires_at', '2026-06-01T00:00:00.001Z', {}],
    ['expires_at', '2026-06-01T00:00:00Z', { expires_at: ['must be in the future'] }],
    ['expires_at', '2020-01-01T00:00:00Z', { expires_at: ['must be in the future'] }],
    ['expires_at', '2027-02-30T00:00:00Z', { expires_at: [time] }],
    ['expires_at', '2027-01-01', { expires_at: [time] }],
    ['expires_at', 'tomorrow', { expires_at: [time] }],
    ['expires_at', 1_900_000_000, { expires_at: ['must be a string'] }],
    ['routes', ['0.0.0.0/0', '::/0'], {}],
    ['routes', ['10.0.0.1/8'], { 'routes.0': [notNetwork] }],
    ['routes', ['10.0.0.0/8', 'fd00::1/64'], { 'routes.1': [notNetwork] }],
    ['dns', ['0.0.0.0', '9.9.9.9', '::1'], { 'dns.0': [resolver], 'dns.2': [resolver] }],
    ['dns', ['nine'], { 'dns.0': [notAddress] }],
    ['routes', ['10.0.0.0/33'], { 'routes.0': [notNetwork] }],
    ['routes', ['10.0.0.0'], { 'routes.0': [notNetwork] }],
    ['routes', ['10.0.0.0/8\n'], { 'routes.0': [notNetwork] }],
    ['routes', ['2001:db8::/32', '2001:DB8::/32'], { routes: ['must be distinct'] }],
    ['routes', 'all', { routes: ['must be a list'] }],
    ['routes', Array.from({ length: 65 }, (_, at) => `10.${at}.0.0/16`), { routes: ['must be at most 64 items'] }],
    ['dns', [], {}],
    ['dns', ['fd00::1', 'fd00:0::1'], { dns: ['must be distinct'] }],
    ['dns', ['1.2.3'], { 'dns.0': [notAddress] }],
    ['dns', ['1.2.3.04'], { 'dns.0': [notAddress] }],
    ['dns', ['dns.example'], { 'dns.0': [notAddress] }],
    ['dns', ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4', '1.1.1.5'], { dns: ['must be at most 4 items'] }],
    ['ipv4', '10.0.0.2', { ipv4: ['is not known'] }],
    ['enabled', false, { enabled: ['is not known'] }],
  ];
  for (const [field, value, faults] of table) {
    const body: Record<string, unknown> = { name: 'a', [field]: value };
    if (value === undefined) delete body[field];
    t.same(faultsOf(validatePeerCreate(body, nowMs)), faults, `${field}: ${label(JSON.stringify(value) ?? 'absent')}`);
  }
  for (const body of [null, [], 'x', 7]) {
    t.same(faultsOf(validatePeerCreate(body, nowMs)), { _: ['must be an object'] });
    t.same(faultsOf(validatePeerUpdate(body, nowMs)), { _: ['must be an object'] });
  }
  t.end();
});

t.test('all faults of a body are told at once', (t) => {
  const body = { name: 'a\u0000', expires_at: '2020-01-01T00:00:00Z', routes: ['10.0.0.1/8'], dns: ['1.2.3'], x: 1 };
  t.same(faultsOf(validatePeerCreate(body, nowMs)), {
    name: [control],
    expires_at: ['must be in the future'],
    'routes.0': [notNetwork],
    'dns.0': [notAddress],
    x: ['is not known'],
  });
  t.end();
});

t.test('the same name in other code points is the same name', (t) => {
  const valid = validatePeerCreate({ name: 'Zoe\u0308' }, nowMs);
  t.equal(valid.ok && valid.value.name, 'Zo\u00eb');
  const update = validatePeerUpdate({ name: 'Zoe\u0308' }, nowMs);
  t.equal(update.ok && update.value.name, 'Zo\u00eb');
  t.end();
});
