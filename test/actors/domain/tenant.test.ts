/** A damaged tenant record fails closed; revocations are listed in pages, or only the changes. */
import t from 'tap';
import type { PartitionState } from '../../../actors/domain/state.ts';
import type { RevocationPage } from '../../../schemas/wire/answers.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { Region, TenantId } from '../../../schemas/ids.ts';
import { defaultCaps, limits } from '../../../schemas/limits.ts';
import { capsOf, defaultTenant, type Revocation, type TenantRecord } from '../../../schemas/api/tenant.ts';
import { hosts } from '../../../actors/domain/tenant/decide.ts';
import { hostKey, tenantId } from '../support.ts';
import { acme, container, contextOf, fleetHost, fleetOf, h1, h2, h3, region, stateOf } from '../support/records.ts';
import { secretRecord } from '../support/secrets.ts';
import { read, write } from '../support/vpn.ts';

const asker = { rid: 'r', budgetMs: 1000 };
const message = 'the record of this tenant is damaged; contact support with the request id';
const revocationOf = (tenant: TenantId, n: number, more: Partial<Revocation> = {}): Revocation => ({
  tenant,
  match: { by: 'jti', value: `token ${n}`.padEnd(200, '.') },
  issuedUntilS: 1000,
  untilMs: 10 ** 12,
  ...more,
});
const withRevocations = (tenant: TenantId, count: number): TenantRecord => ({
  ...defaultTenant(tenant),
  revocations: Array.from({ length: count }, (_, n) => revocationOf(tenant, n)),
});
const page = (state: PartitionState, after: string | null): RevocationPage =>
  read(state, { type: 'revocation.list', partition: 0, after }).body as RevocationPage;
function all(state: PartitionState, after: string | null = null): RevocationPage[] {
  const pages = [page(state, after)];
  for (let last = pages.at(-1); last?.more === true; last = pages.at(-1)) pages.push(page(state, last.next));
  return pages;
}

t.test('a damaged tenant record is not read, and nothing overwrites it', (t) => {
  const state = stateOf();
  state.quarantine(keys.tenant(acme));
  const of = { tenant: acme };
  const revocation = revocationOf(acme, 1);
  const asks = {
    get: () => read(state, { type: 'tenant.get', ...of }),
    quota: () => read(state, { type: 'tenant.quota', region: '*', ...of }),
    revoke: () => write(state, { type: 'tenant.revoke', revocation, ...of }),
  };
  for (const [name, ask] of Object.entries(asks)) t.match(ask(), { code: 'internal', body: { message } }, name);
  t.equal(write(state, { type: 'tenant.put', settings: {}, ...of }).code, 'conflict', 'a put that asks for no repair');
  t.ok(state.tenant(acme).settingsDamaged);
  t.same(page(state, null).unreadable, [acme]);
  t.end();
});

t.test('a revocation for one use is refused the second time', (t) => {
  const state = stateOf();
  const revocation = { ...revocationOf(acme, 1), match: { by: 'jti', value: 'choice.1' } } as const;
  const use = (value: string, once = true): string => {
    const of = { ...revocation, match: { by: 'jti', value } } as const;
    return write(state, { type: 'tenant.revoke', tenant: acme, revocation: of, ...(once ? { once } : {}) }).code;
  };
  t.same([use('choice.1'), use('choice.1'), use('choice.2')], ['created', 'precondition_failed', 'created']);
  t.equal(use('choice.1', false), 'created', 'an ordinary revocation may come again');
  t.end();
});

t.test('the hosts that a create may name, in pages', (t) => {
  const [eu, us] = ['eu', 'us'].map(region) as [Region, Region];
  const fleet = fleetOf(
    fleetHost(h3, { region: us }),
    fleetHost(h2, { region: eu, condition: 'silent', schedulable: false }),
    fleetHost(h1, { region: eu }),
    fleetHost(hostKey('h4'), { region: eu, condition: 'fenced' }),
    fleetHost(hostKey('h5')),
  );
  const state = stateOf({ ...defaultTenant(acme), regions: [us, eu] });
  const page = (limit: number, after = '') =>
    JSON.parse(
      hosts(state, { type: 'tenant.hosts', tenant: acme, limit, after, ...asker }, contextOf(fleet)).reply.body,
    ) as object;
  const [one, two, three] = [
    { key: h1, region: eu },
    { key: h2, region: eu },
    { key: h3, region: us },
  ];
  t.same(page(10), { data: [one, two, three], more: false });
  t.same(page(2), { data: [one, two], more: true });
  t.same(page(2, h2), { data: [three], more: false });
  t.end();
});

t.test('an operator repairs it, and every token issued until then is revoked', (t) => {
  const state = stateOf();
  state.quarantine(keys.tenant(acme));
  const { next } = page(state, null);
  const repair = revocationOf(acme, 1, { match: { by: 'tenant' } });
  t.equal(write(state, { type: 'tenant.put', tenant: acme, settings: {}, repair }).code, 'ok');
  t.notOk(state.tenant(acme).settingsDamaged);
  t.match(page(state, next), { data: [{ match: { by: 'tenant' } }], unreadable: [], whole: false });
  t.equal(read(state, { type: 'tenant.get', tenant: acme }).code, 'ok');
  t.end();
});

t.test('revocations: pages that fit a message, then what changed alone', (t) => {
  const names = Array.from({ length: 20 }, (_, n) => tenantId(`t${n}`));
  const state = stateOf(...names.map((name) => withRevocations(name, 900)));
  state.quarantine(keys.tenant(acme));
  const pages = all(state);
  t.ok(pages.length > 5);
  for (const each of pages) t.ok(JSON.stringify(each).length <= limits.answerPartBytes);
  t.same(
    pages.map(({ whole }) => whole),
    pages.map((_, n) => n === 0),
    'the first page begins again',
  );
  t.equal(
    new Set(pages.flatMap(({ data }) => data.map((one) => `${one.tenant} ${JSON.stringify(one.match)}`))).size,
    18000,
  );
  t.same(
    pages.flatMap(({ unreadable }) => unreadable),
    [acme],
  );

  const after = pages.at(-1)?.next ?? null;
  t.match(page(state, after), { data: { length: 0 }, unreadable: [], whole: false, more: false, next: after });
  const one = tenantId('one');
  write(state, { type: 'tenant.revoke', tenant: one, revocation: revocationOf(one, 1) });
  write(state, { type: 'tenant.put', tenant: tenantId('t3'), settings: { caps: { containers: 1 } } });
  t.same(
    page(state, after).data.map(({ tenant }) => tenant),
    [one],
    'other settings are no news',
  );
  t.match(page(state, '7.3'), { whole: true }, 'a cursor of another memory counts nothing');
  t.match(page(state, 'nonsense'), { whole: true });
  t.end();
});

t.test('caps that a record lacks are what its containers can use', (t) => {
  const old = { containers: 500, cpu_millis: null, mem_bytes: null, vpn_peers: 10 };
  const derived = (containers: number, deletes_per_hour: number) => ({
    ports: containers * limits.ports,
    disk_bytes: containers * limits.containerDiskBytes,
    deletes_per_hour,
  });
  t.same(capsOf(old), { ...old, ...derived(500, 5000) });
  t.same(capsOf({ containers: 100 }), { ...defaultCaps, containers: 100, ...derived(100, 1500) });
  t.same(capsOf({ ...old, deletes_per_hour: null }), { ...old, ...derived(500, 0), deletes_per_hour: null });
  const uncapped = { ...old, containers: null };
  t.same(capsOf(uncapped), { ...uncapped, ports: null, disk_bytes: null, deletes_per_hour: 5000 });
  t.same(capsOf(defaultTenant(acme).caps), { ...defaultCaps, ...derived(20, 300) });
  t.end();
});

t.test('only what was set is stored, so that the rest follows from it', (t) => {
  const state = stateOf();
  const put = (caps: object) => {
    const { reply } = write(state, { type: 'tenant.put', tenant: acme, settings: { caps } });
    return (JSON.parse(reply.body) as { data: { caps: object } }).data.caps;
  };
  t.match(put({ containers: 30 }), { containers: 30, ports: 30 * limits.ports, vpn_peers: 10 });
  t.same(state.tenant(acme).record.caps, { containers: 30 });
  put({ ports: 7 });
  t.same(state.tenant(acme).record.caps, { ports: 7 });
  t.match(capsOf(state.tenant(acme).record.caps), { containers: 20, ports: 7, deletes_per_hour: 300 });
  t.end();
});

t.test('an operator’s list has the tenants of which something is stored, by id', (t) => {
  const [b, c, d, e] = ['b', 'C', 'd-1', 'e'].map(tenantId) as [TenantId, TenantId, TenantId, TenantId];
  const gone = container({ tenant: e });
  const state = stateOf({ ...defaultTenant(d), updatedAtMs: 1 }, container({ tenant: b }), gone);
  state.quarantine(keys.tenant(c));
  state.delete(keys.container(e, gone.id));
  const list = (limit: number, after = '') =>
    read(state, { type: 'tenant.list', partition: 0, limit, after }).body as {
      data: { id: string; regions: unknown; caps: unknown; usage: object }[];
      more: boolean;
    };
  const ids = ({ data, more }: ReturnType<typeof list>) => [data.map(({ id }) => id).join(' '), more];
  t.same(ids(list(10)), ['C b d-1', false], 'not one whose last container is forgotten');
  state.tenant(tenantId('never'));
  state.put(container({ tenant: acme }));
  t.same(ids(list(10)), ['C acme b d-1', false]);
  t.same(ids(list(2)), ['C acme', true]);
  t.same(ids(list(2, acme)), ['b d-1', false]);
  t.same(ids(list(2, 'abc')), ['acme b', true], 'the last of a page may be gone');
  const [damaged, used] = list(2).data;
  t.match(damaged, { regions: null, caps: null, usage: { containers: 0 } });
  t.match(used, { regions: ['default'], caps: { containers: 20 }, usage: { containers: 1, cpu_millis: 100 } });
  t.end();
});

t.test('a tenant that has only a secret, or only a login, is in an operator’s list', (t) => {
  const secret = secretRecord('db', 1);
  const login = { ...secret, kind: 'login', registry: 'r.example', username: 'ci' } as const;
  for (const [record, key] of [
    [secret, keys.secret(acme, 'db', 1)],
    [login, keys.login(acme, 'r.example')],
  ] as const) {
    const state = stateOf(record);
    const ids = (): string[] =>
      (
        read(state, { type: 'tenant.list', partition: 0, limit: 10, after: '' }).body as { data: { id: string }[] }
      ).data.map(({ id }) => id);
    t.same(ids(), [acme], record.kind);
    state.quarantine(key);
    t.same(ids(), [acme], `a damaged ${record.kind}`);
    state.delete(key);
    t.same(ids(), [], `${record.kind} deleted`);
  }
  t.end();
});

t.test('the largest tenant fits a page', (t) => {
  const record = withRevocations(acme, limits.revocationsPerTenant);
  t.ok(JSON.stringify(record).length <= limits.recordBytes);
  t.equal(page(stateOf(record), null).data.length, limits.revocationsPerTenant);
  t.end();
});

t.test('a tenant of which nothing is stored any more is forgotten', (t) => {
  const gone = container();
  const state = stateOf(gone);
  const tombstone = {
    kind: 'tombstone',
    id: gone.id,
    tenant: acme,
    history: [],
    goneAtMs: 1,
    idempotency: null,
  } as const;
  state.put(tombstone);
  t.equal([...state.tenants()].length, 1, 'it may hold an Idempotency-Key');
  state.delete(keys.container(acme, gone.id));
  t.same([...state.tenants()], []);
  t.same([...state.tenantsFrom('')], []);

  state.put(secretRecord('db', 1));
  state.put({ kind: 'secret_floor', tenant: acme, version: 1, updatedAtMs: 1 });
  state.delete(keys.secret(acme, 'db', 1));
  t.equal(state.tenant(acme).secrets.floor, 1, 'but no version of a secret comes again');
  t.end();
});
