/** The domain as the runtime sees it: what a change makes dirty, which answers are final. */
import t from 'tap';
import { splitHead } from '../../../schemas/api/etag.ts';
import { createDomain, hostDirtyKey, records } from '../../../actors/domain/domain.ts';
import type { StateRecord } from '../../../actors/domain/records.ts';
import { conflict, noChanges, refuse, type Changes, type Effect, type Reply } from '../../../actors/domain/turn.ts';
import { Placements } from '../../../actors/endpoints/placements.ts';
import { wholePartition } from '../../../actors/runtime/domain.ts';
import type { TombstoneRecord } from '../../../schemas/api/container.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { defaultTenant } from '../../../schemas/api/tenant.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import { containerId, hostKey, tenantId } from '../support.ts';
import { acme, container, contextOf, fleetHost, fleetOf, h1, h2, hostRecord, none } from '../support/records.ts';
import { observation, placedOn, unplaced } from '../support/records.ts';
import { home, leaseOf, networkRecord, peerId, peerRecord } from '../support/vpn.ts';
import { hostRevisionsKept } from '../../../actors/domain/state.ts';

const context = contextOf(fleetOf(fleetHost(h1)));
const asker = { rid: 'r', budgetMs: 1000 };

/** A partition with these records, as a load leaves it. */
function domainWith(...loaded: readonly StateRecord[]) {
  const ledger = new Placements();
  const domain = createDomain({ cluster: 'c', incarnation: 0, fleet: context.fleet, ledger });
  const state = domain.open({ epoch: 1, last: 100 });
  for (const record of loaded) domain.put(state, record);
  const revisions = () => [h1, h2].map((host) => state.revisionOf(host));
  const apply = (changes: Partial<Changes>): string[] => {
    const dirty = new Set<string>();
    domain.apply(state, { ...noChanges, ...changes }, { markDirty: (key) => dirty.add(key) });
    return [...dirty].sort();
  };
  return { domain, state, ledger, revisions, apply };
}

const tombstoneOf = ({ id, tenant }: { id: TombstoneRecord['id']; tenant: TombstoneRecord['tenant'] }) =>
  ({ kind: 'tombstone', id, tenant, history: [], goneAtMs: 5, idempotency: null }) satisfies TombstoneRecord;

t.test('hosts that have nothing here are forgotten, and their revisions never go back', (t) => {
  const { state, apply } = domainWith();
  const stays = container({ placement: placedOn(h1) });
  apply({ records: [stays] });
  const [first, before] = [state.revisionOf(h1), state.revisionOf(h2)];
  let highest = 0;
  for (let index = 0; index < 2 * hostRevisionsKept; index++) {
    const host = hostKey(`host-${index}`);
    const passing = container({ placement: placedOn(host) }, 'passing');
    apply({ records: [passing] });
    apply({ deletes: [keys.container(acme, passing.id)] });
    const revision = state.revisionOf(host);
    t.ok(revision > highest);
    highest = revision;
  }
  t.equal(state.revisionOf(h1), first, 'one that has something is known');
  const forgotten = state.revisionOf(hostKey('host-0'));
  t.ok(forgotten > before, 'as is one that never had anything');
  t.equal(state.revisionOf(hostKey('host-1')), forgotten);
  t.equal(state.revisionOf(h2), forgotten);
  t.ok(forgotten <= highest);
  t.end();
});

t.test('a change of a member notifies the hosts of its tenant, except the one that rings anyway', (t) => {
  const { domain, state } = domainWith();
  const effectsOf = (changes: Partial<Changes>) =>
    domain.apply(state, { ...noChanges, ...changes }, { markDirty: () => {} });
  const notice = (rung: HostKey | null) => ({ kind: 'members', tenant: acme, rung });
  const rings: Effect = { kind: 'doorbell', host: h1 };
  const made = container({ placement: placedOn(h1) });
  t.same(effectsOf({ records: [made], effects: [rings] }), [notice(h1)]);
  t.same(effectsOf({ records: [{ ...made, observed: observation('running') }], effects: [rings] }), []);
  t.same(effectsOf({ records: [{ ...made, placement: placedOn(h2) }], effects: [rings] }), [notice(null)]);
  const peer = peerRecord();
  t.same(effectsOf({ records: [peer] }), [notice(null)]);
  t.same(effectsOf({ records: [{ ...peer, generation: 2 }] }), [], 'the same member');
  const cut = { ...notice(null), left: home };
  t.same(effectsOf({ records: [{ ...peer, enabled: false }] }), [cut], 'it may be the last one in its network');
  const gone = { records: [tombstoneOf(made)], deletes: [keys.container(acme, made.id)] };
  t.same(effectsOf(gone), [notice(null)], 'once');
  t.end();
});

t.test('of a tenant that is gone nothing is kept, and the revision of its members never goes back', (t) => {
  const { state, apply } = domainWith();
  const made = container({ placement: placedOn(h1) });
  const revision = (tenant = acme) => state.memberSummaryOf(tenant).revision;
  apply({ records: [made] });
  const [there, other] = [revision(), revision(tenantId('other'))];
  t.equal(state.memberSummaryOf(acme), state.memberSummaryOf(acme), 'kept');
  apply({ deletes: [keys.container(acme, made.id)] });
  const gone = revision();
  t.ok(gone > there);
  t.same([...state.tenants()], []);
  t.not(state.memberSummaryOf(acme), state.memberSummaryOf(acme), 'not kept');
  t.ok(revision(tenantId('other')) >= other);
  apply({ records: [defaultTenant(acme)] });
  t.ok(revision() >= gone, 'there again, without members');
  apply({ records: [container({ placement: placedOn(h1) })] });
  t.ok(revision() > gone);
  t.end();
});

t.test('a record makes dirty what is read of it, and of the tenant, network or host around it', (t) => {
  const peer = peerRecord();
  const lease = leaseOf(2, acme, peer.id);
  const gone = { kind: 'peer_tombstone', id: peer.id, tenant: acme, network: home, goneAtMs: 1 } as const;
  const revoked = {
    kind: 'revoked',
    network: home,
    serial: 's1',
    notAfterMs: 9,
    atMs: 1,
    reason: 'superseded',
  } as const;
  const rows: [string, StateRecord, string | undefined][] = [
    ['tenant', defaultTenant(acme), 'of acme'],
    ['container', container({ placement: unplaced }), 'of acme'],
    ['peer', peer, 'of acme'],
    ['removed peer', { ...gone, generation: 2, told: true, toldIn: 0, revoked: [] }, 'of acme'],
    ['network', networkRecord(), 'net home'],
    ['lease', lease, 'net home'],
    ['revoked certificate', { ...revoked, tenant: acme, peer: peer.id } as StateRecord, 'net home'],
    ['host', hostRecord(h1), 'on h1'],
    ['revoked key', { kind: 'revoked_key', publicKey: 'U', host: h1, atMs: 1 }, undefined],
  ];
  for (const [name, record, around] of rows) {
    const { apply } = domainWith();
    const both = [records.keyOf(record), ...(around === undefined ? [] : [around])].sort();
    t.same(apply({ records: [record] }), both, name);
  }
  t.end();
});

t.test('what is desired on a host changes with the generation of a container, where it was and where it is', (t) => {
  const placed = container({ placement: placedOn(h1), generation: 2 });
  const next = { ...placed, generation: 3 };
  const rows: [string, StateRecord[], StateRecord, HostKey[]][] = [
    ['new', [], placed, [h1]],
    ['new, and nowhere', [], { ...placed, placement: unplaced }, []],
    ['observed', [placed], { ...placed, observed: observation('failed') }, []],
    ['changed', [placed], next, [h1]],
    ['moved', [placed], { ...next, placement: placedOn(h2) }, [h1, h2]],
    ['taken off', [placed], { ...next, placement: unplaced }, [h1]],
    ['gone', [placed], tombstoneOf(placed), [h1]],
    ['gone, and was nowhere', [{ ...placed, placement: unplaced }], tombstoneOf(placed), []],
    ['gone already', [tombstoneOf(placed)], tombstoneOf(placed), []],
  ];
  for (const [name, before, record, hosts] of rows) {
    const { apply, revisions } = domainWith(...before);
    const was = revisions();
    const dirty = apply({ records: [record] });
    t.same(
      dirty.filter((key) => key.startsWith('on ')),
      hosts.map(hostDirtyKey),
      name,
    );
    const raised = [h1, h2].filter((_, index) => revisions()[index] !== was[index]);
    t.same(raised, hosts, `${name}: so do the revisions`);
  }
  t.end();
});

t.test('a deleted record is dirty too', (t) => {
  const peer = peerRecord();
  const gone = tombstoneOf(container());
  const { apply, state } = domainWith(hostRecord(h1), networkRecord(), leaseOf(2, acme, peer.id), peer, gone);
  for (const [key, around] of [
    [keys.host(h1), ['on h1']],
    [keys.lease(home, 2), ['net home']],
    [keys.network(home), ['net home']],
    [keys.peer(acme, peer.id), ['of acme']],
    [keys.container(acme, gone.id), []],
  ] as const) {
    t.same(apply({ deletes: [key] }), [key, ...around].sort(), key);
  }
  t.same(
    [state.host(h1), state.tenant(acme).tombstones.size, state.tenant(acme).peers.records.size],
    [undefined, 0, 0],
  );
  t.end();
});

t.test('a reader waits for what it looks at', (t) => {
  const { domain } = domainWith();
  const id = containerId();
  t.equal(domain.dirtyKeyOf({ type: 'container.get', tenant: acme, id, ...asker }), keys.container(acme, id));
  t.equal(domain.dirtyKeyOf({ type: 'container.list', tenant: acme, limit: 1, before: null, ...asker }), 'of acme');
  t.equal(domain.dirtyKeyOf({ type: 'network.get', network: home, ...asker }), 'net home');
  t.equal(
    domain.dirtyKeyOf({ type: 'host.get', host: h1, ...asker }),
    wholePartition,
    'which has its use and condition',
  );
  const start = { type: 'container.start', tenant: acme, id, op: 'o' as WriteAsk['op'], ...asker } as const;
  t.equal(domain.dirtyKeyAround(start), 'of acme', 'a refusal speaks of names and caps too');
  t.equal(domain.dirtyKeyOfRepeat({ kind: 'container', tenant: acme, id }), keys.container(acme, id));
  t.end();
});

t.test('answers that are final for a write that changed nothing', (t) => {
  const { domain } = domainWith();
  const [ok, refused, unavailable] = [
    { code: 'ok', body: '' },
    conflict('removing', 'x').reply,
    refuse('unavailable').reply,
  ] as const;
  const rows: [string, WriteAsk['type'], Reply, boolean][] = [
    ['done already', 'container.start', ok, true],
    ['as often as one asks', 'container.start', { ...ok, isIdempotent: true }, false],
    ['refused', 'container.start', refused, true],
    ['refused for now', 'container.start', unavailable, false],
    ['between partitions, refused', 'network.learn', refused, false],
    ['between partitions, refused', 'peer.forgo', refused, false],
    ['between partitions, heard', 'network.learn', ok, true],
  ];
  for (const [name, type, reply, isFinal] of rows) {
    t.equal(domain.isFinal({ type } as WriteAsk, reply), isFinal, `${name}: ${type}, ${reply.code}`);
  }
  t.end();
});

t.test('a repeated create is answered from the record, as long as its tenant has it', (t) => {
  const record = container();
  const { domain, state, apply } = domainWith(record);
  const again = (tenant = acme, head?: true) => {
    const ask = { type: 'container.start', tenant, id: record.id, ...(head === undefined ? {} : { head }) };
    return domain.repeated(state, { kind: 'container', tenant, id: record.id }, context, ask as WriteAsk);
  };
  const { data } = JSON.parse(again() ?? '') as { data: object };
  t.match(data, { id: record.id });
  t.match(splitHead(again(acme, true) ?? ''), { body: again(), head: { etag: /^"/ } });
  t.equal(again(tenantId('bolt')), undefined, 'another tenant has none by this id');
  apply({ records: [tombstoneOf(record)] });
  t.equal(again(), undefined);
  t.end();
});

t.test('of effects with one key the last is carried out: one for each host, container and kind', (t) => {
  const { domain } = domainWith();
  const id = containerId();
  const effects: Effect[] = [
    { kind: 'doorbell', host: h1 },
    { kind: 'doorbell', host: h2 },
    { kind: 'directory', host: h1, entry: null },
    { kind: 'changed', tenant: acme, id },
    { kind: 'changed', tenant: acme, id: containerId() },
    { kind: 'changed', tenant: tenantId('bolt'), id },
    { kind: 'outbox' },
  ];
  t.equal(new Set([...effects, ...effects].map(domain.effectKey)).size, effects.length);
  t.end();
});

t.test('an event names the host of its container, if it has one', (t) => {
  const { domain } = domainWith();
  const head = { id: '0-1-0', nowMs: 1000, requestId: 'r', by: undefined };
  const record = container({ observed: observation('failed', { reason: 'exited', exit_code: 3 }) });
  const of = (placement: typeof record.placement) =>
    domain.event({ type: 'created', container: { ...record, placement }, status: 'lost' }, head);
  t.match(of(placedOn(h2)), {
    subject: new RegExp(`acme\\.${record.id}$`),
    event: {
      id: '0-1-0',
      ts: '1970-01-01T00:00:01.000Z',
      host_key: 'h2',
      status: 'lost',
      reason: 'exited',
      exit_code: 3,
    },
  });
  t.equal(of(unplaced).event.host_key, null);
  t.end();
});

t.test('a load fills memory in the order of creation, leases by their index', (t) => {
  const web = container({ insertedAtMs: 200 });
  const early = { ...tombstoneOf(container()), goneAtMs: 100 };
  const twins = [peerRecord({ insertedAtMs: 150 }), peerRecord({ insertedAtMs: 150 }, 'laptop', 3)].sort(
    (one, other) => (one.id < other.id ? -1 : 1),
  );
  const leases = [2, 10].map((index) => leaseOf(index, acme, peerId()));
  const sorted: StateRecord[] = [hostRecord(h1), ...leases, early, ...twins, web];
  t.same([...sorted].reverse().sort(records.compare).map(records.keyOf), [
    keys.host(h1),
    ...[...leases, early, ...twins, web].map(records.keyOf),
  ]);
  for (const record of sorted) t.ok(records.isKey(records.keyOf(record)));
  for (const key of [keys.epoch, keys.checkpoint, keys.digest, keys.events(1), 'hostile.x']) {
    t.notOk(records.isKey(key), key);
  }
  t.end();
});

t.test('a partition that is given up is off the ledger, and nothing of it is placed', (t) => {
  const { domain, state, ledger } = domainWith(container(), container({}, 'db'));
  t.match(ledger.used(h1, undefined), { cpu_millis: 200, containers: 2 });
  domain.release(state);
  domain.release(state);
  t.same(ledger.used(h1, undefined), none);
  t.end();
});

t.test('memory gives back every record that it was given, of each kind', (t) => {
  const peer = peerRecord();
  const gone = container();
  const some = { tenant: acme, name: 'n', updatedAtMs: 1, insertedAtMs: 1, version: 2 };
  // Shapes do not matter here: memory keeps records as they are.
  const byKind = {
    tenant: { ...defaultTenant(acme), updatedAtMs: 1 },
    container: container({ placement: placedOn(h1) }),
    tombstone: tombstoneOf(gone),
    secret: { ...some, kind: 'secret' },
    secret_floor: { kind: 'secret_floor', tenant: acme, version: 7, updatedAtMs: 1 },
    login: { ...some, kind: 'login', registry: 'registry.test:5000' },
    file: { ...some, kind: 'file', sha256: 'ab', content: 'YQ==', bytes: 1 },
    key: { kind: 'key', tenant: acme, id: peerId(), issuedAtS: 1 },
    answer: {
      kind: 'answer',
      tenant: acme,
      key: 'k',
      request: 'r',
      answer: { kind: 'body', body: '' },
      updatedAtMs: 1,
    },
    signing_key: { kind: 'signing_key', id: 's1', insertedAtMs: 1 },
    host: hostRecord(h1),
    revoked_key: { kind: 'revoked_key', publicKey: 'U', host: h1, atMs: 1 },
    peer,
    peer_tombstone: {
      ...{ kind: 'peer_tombstone', id: peerId(), tenant: acme, network: home, goneAtMs: 1 },
      ...{ generation: 2, told: true, toldIn: 0, revoked: [] },
    },
    network: networkRecord(),
    lease: leaseOf(2, acme, peer.id),
    revoked: { kind: 'revoked', network: home, serial: 's1', notAfterMs: 9, atMs: 1, reason: 'superseded' },
  } as unknown as { readonly [Kind in StateRecord['kind']]: Extract<StateRecord, { kind: Kind }> };
  const all = Object.values<StateRecord>(byKind);
  const { domain, state } = domainWith(...all);
  const byKey = (given: Iterable<StateRecord>) => new Map([...given].map((record) => [records.keyOf(record), record]));
  t.same(byKey(domain.all(state)), byKey(all));
  for (const key of byKey(all).keys()) domain.remove(state, key);
  t.same(
    [...domain.all(state)].filter(({ kind }) => kind !== 'secret_floor' && kind !== 'tenant'),
    [],
    'and nothing else',
  );
  const damaged = domainWith();
  for (const key of byKey(all).keys()) damaged.domain.quarantine(damaged.state, key);
  t.same([...damaged.domain.all(damaged.state)], [], 'what is damaged is not there');
  t.end();
});
