/** Each tenant has a bound on records of deleted things; a create over it is refused for a time. */
import t from 'tap';
import type { PartitionState } from '../../../../actors/domain/state.ts';
import type { StateRecord } from '../../../../actors/domain/records.ts';
import { expired } from '../../../../actors/domain/sweep.ts';
import { gonePeersMax, peersGoneAnHourMax, gonePeersMin } from '../../../../actors/domain/tenant/remembered.ts';
import { replyOf } from '../../../../gateway/http/respond.ts';
import type { TombstoneRecord } from '../../../../schemas/api/container.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { PeerRecord, PeerRevocation, PeerTombstoneRecord } from '../../../../schemas/api/peer.ts';
import { containerId, specOf, tenantId } from '../../support.ts';
import { acme, apply, stateOf } from '../../support/records.ts';
import { home, newSecrets, madePeer, peerId, peerRecord, read, write } from '../../support/vpn.ts';
import { peerRenewedCertificates } from '../../../../actors/domain/peer/keys.ts';

const nowMs = 10 ** 12;
const hourMs = 3_600_000;

const tombstone = (goneAtMs: number): TombstoneRecord => ({
  kind: 'tombstone',
  id: containerId(),
  tenant: acme,
  history: [],
  goneAtMs,
  idempotency: null,
});
const serialOf = (index: number, atMs: number, notAfterMs = nowMs + 100 * hourMs): PeerRevocation => ({
  serial: `s${index}`,
  notAfterMs,
  atMs,
  reason: 'superseded',
  toldIn: 0,
});
const serials = (count: number, atMs: number) => Array.from({ length: count }, (_, index) => serialOf(index, atMs));
const peerTombstone = (goneAtMs: number, revoked: PeerRevocation[] = []): PeerTombstoneRecord => ({
  kind: 'peer_tombstone',
  id: peerId(),
  tenant: acme,
  network: home,
  generation: 2,
  told: true,
  toldIn: 0,
  revoked,
  goneAtMs,
});

t.test('the bounds of peers grow with the cap, within limits', (t) => {
  for (const [cap, peers, anHour] of [
    [0, 2000, 60],
    [20, 4000, 60],
    [100, 20_000, 200],
    [10 ** 9, 100_000, 100_000],
    [null, 100_000, 100_000],
  ] as const) {
    t.equal(gonePeersMax(cap), peers, `peers, cap ${cap}`);
    t.equal(peersGoneAnHourMax(cap), anHour, `peers an hour, cap ${cap}`);
  }
  t.end();
});

const create = (state: PartitionState, atMs: number) =>
  write(
    state,
    { type: 'container.create', tenant: acme, id: containerId(), spec: specOf('c'), idempotency: null },
    atMs,
  );
const put = (state: PartitionState, caps: object) =>
  write(state, { type: 'tenant.put', tenant: acme, settings: { caps } }, nowMs);
const many = (count: number, goneAtMs: (index: number) => number) =>
  Array.from({ length: count }, (_, index) => tombstone(goneAtMs(index)));

t.test('a create is refused until fewer were deleted in the last hour than the cap', (t) => {
  const max = limits.deletesPerHourMin;
  const oldestMs = nowMs - hourMs + 90_000;
  const state = stateOf(...many(5000, () => oldestMs - 90_000), ...many(max, (index) => oldestMs + index));
  t.match(create(state, nowMs), {
    code: 'rate_limited',
    body: { retry_after_seconds: 90, message: /deletes_per_hour/ },
  });
  t.equal(create(state, nowMs + 90_000).code, 'created', 'as it said');
  t.end();
});

t.test('the cap is the operator’s to set', (t) => {
  const state = stateOf(...many(400, () => nowMs - 1000));
  const quota = () =>
    (
      read(state, { type: 'tenant.quota', tenant: acme, region: '*' }, nowMs).body as {
        data: { usage: object; caps: object };
      }
    ).data;
  t.match(quota(), { usage: { deletes_per_hour: 400 }, caps: { deletes_per_hour: 300 } });
  for (const [caps, code] of [
    [{}, 'rate_limited'],
    [{ deletes_per_hour: 400 }, 'rate_limited'],
    [{ deletes_per_hour: 401 }, 'created'],
    [{ deletes_per_hour: null }, 'created'],
    [{ deletes_per_hour: 1 }, 'rate_limited'],
    [{ containers: 100 }, 'created'],
    [{ containers: null }, 'created'],
  ] as const) {
    put(state, caps);
    const trial = stateOf(state.tenant(acme).record, ...state.tenant(acme).tombstones.values());
    t.equal(create(trial, nowMs).code, code, JSON.stringify(caps));
  }
  t.end();
});

t.test('a clock that was ahead, and is set back, locks nobody out', (t) => {
  const days = 24 * hourMs;
  const state = stateOf(...many(400, () => nowMs + 3 * days));
  t.equal(create(state, nowMs).code, 'created');
  const soon = stateOf(...many(400, () => nowMs + hourMs / 2));
  t.match(create(soon, nowMs), { code: 'rate_limited', body: { retry_after_seconds: 3600 } });
  t.end();
});

t.test('a tenant that builds: 300 containers a day, within four hours, for two weeks', (t) => {
  const state = stateOf();
  let [created, atMs] = [0, nowMs];
  for (let day = 0; day < 14; day++) {
    for (let index = 0; index < 300; index++) {
      atMs = nowMs + day * 24 * hourMs + index * 48_000;
      const id = containerId();
      const spec = specOf(`c${day}-${index}`);
      const { code } = write(state, { type: 'container.create', tenant: acme, id, spec, idempotency: null }, atMs);
      if (code === 'created') created++;
      write(state, { type: 'container.delete', tenant: acme, id }, atMs + 1000);
      apply(state, expired(state, atMs));
    }
  }
  t.equal(created, 14 * 300, 'no create was refused');
  t.ok(state.tombstoneCount <= 8 * 300, 'and a week of them is remembered');
  t.ok(state.tenant(acme).deletions.length <= 2 * 300, 'of their times, little more than an hour');
  t.end();
});

t.test('more than a partition remembers: the tenant with the most forgets its oldest, after a day', (t) => {
  const bolt = tenantId('bolt');
  const dayMs = 24 * hourMs;
  const of = (tenant: TenantId, count: number, ageMs: number) =>
    many(count, (index) => nowMs - ageMs + index).map((one) => ({ ...one, tenant }));
  const state = stateOf(...of(acme, 20, 3 * dayMs), ...of(bolt, 40, 2 * dayMs), ...of(bolt, 30, dayMs - 1000));
  const left = (most: number) => {
    for (let sweeps = 0; sweeps < 20; sweeps++) apply(state, expired(state, nowMs, most));
    return [state.tenant(acme), state.tenant(bolt)].map(({ tombstones }) => tombstones.size);
  };
  const oldest = [...state.tenant(bolt).tombstones.keys()].slice(0, 10);
  t.same(left(90), [20, 70], 'not more than it may');
  t.same(left(80), [20, 60]);
  t.notOk(oldest.some((id) => state.tenant(bolt).tombstones.has(id)));
  t.same(left(0), [20, 30], 'none within a day, though the other tenant has older ones');
  t.end();
});

t.test('the wait reaches the client as Retry-After', (t) => {
  const body = JSON.stringify({ error: 'rate_limited', message: 'wait', retry_after_seconds: 77 });
  const { headers, status } = replyOf({ code: 'rate_limited', body }, 'r');
  t.equal(status, 429);
  t.equal(headers[headers.indexOf('retry-after') + 1], '77');
  t.equal(
    replyOf({ code: 'rate_limited', body: '' }, 'r').headers.includes('1'),
    true,
    'a second where nothing is said',
  );
  t.end();
});

t.test('a peer is refused', (t) => {
  const peer = (...records: readonly StateRecord[]) =>
    write(stateOf(...records), { type: 'peer.create', tenant: acme, peer: peerId(), made: madePeer('p', 9) }, nowMs);
  const gone = (count: number, goneAtMs: number) => Array.from({ length: count }, () => peerTombstone(goneAtMs));
  const lately = limits.peersGoneAnHourMin;
  t.equal(peer(...gone(lately - 1, nowMs - 1)).code, 'created');
  t.equal(peer(...gone(lately + 5, nowMs - hourMs)).code, 'created', 'those of an hour ago do not count');
  t.match(peer(...gone(lately, nowMs - hourMs + 7000)), { code: 'rate_limited', body: { retry_after_seconds: 7 } });

  const max = gonePeersMin;
  const old = nowMs - 10 * hourMs;
  t.equal(peer(peerTombstone(old, serials(max - 2, old))).code, 'created');
  t.match(
    peer(peerTombstone(old, serials(max - 1, old))),
    { code: 'rate_limited', body: { message: /operator/, retry_after_seconds: 100 * 3600 } },
    'until the certificate of the first ends',
  );
  t.match(
    peer(peerRecord({ renewed: serials(max, old) }, 'other')),
    { code: 'rate_limited' },
    'nor while they are to be refused later',
  );
  t.end();
});

t.test('a rotation is refused', (t) => {
  const rotate = (more: Partial<PeerRecord>) => {
    const record = peerRecord(more);
    const ask = {
      type: 'peer.rotate',
      tenant: acme,
      peer: record.id,
      replaces: record.certificate.serial,
      ...newSecrets(),
    };
    return write(stateOf(record), ask as Parameters<typeof write>[1], nowMs);
  };
  const most = limits.peerRotationsAnHour;
  const times = (count: number, atMs: number) => ({ rotatedAtMs: Array.from({ length: count }, () => atMs) });
  t.equal(rotate(times(most - 1, nowMs - 1)).code, 'ok');
  t.equal(rotate(times(most, nowMs - hourMs)).code, 'ok');
  t.match(rotate(times(most, nowMs - hourMs + 5000)), { code: 'rate_limited', body: { retry_after_seconds: 5 } });
  t.equal(rotate(times(most, nowMs + 10 * hourMs)).code, 'ok', 'a clock that was ahead locks nobody out');
  const renewals = serials(most + 4, nowMs - 1);
  t.equal(rotate({ revoked: renewals }).code, 'ok', 'renewals that a rotation revoked do not count');
  const kept = limits.peerRevocationsKept;
  t.match(rotate({ revoked: serials(kept, 1) }), { code: 'conflict', body: { message: /make another/ } });
  const revoked = serials(kept, 1).map((one) => ({ ...one, notAfterMs: nowMs }));
  t.equal(rotate({ revoked }).code, 'ok', 'certificates that have expired do not count');
  t.end();
});

t.test('one rotation counts once, whatever it revokes', (t) => {
  const record = peerRecord({ renewed: serials(peerRenewedCertificates, 1) });
  const state = stateOf(record);
  const rotate = (atMs: number) => {
    const { serial } = state.tenant(acme).peers.records.get(record.id)?.certificate ?? { serial: '' };
    const ask = { type: 'peer.rotate', tenant: acme, peer: record.id, replaces: serial, ...newSecrets() };
    return write(state, ask as Parameters<typeof write>[1], atMs);
  };
  for (let count = 0; count < limits.peerRotationsAnHour; count++) t.equal(rotate(nowMs + count).code, 'ok');
  t.match(rotate(nowMs + 60_000), { code: 'rate_limited', body: { retry_after_seconds: 3540 } });
  t.equal(rotate(nowMs + hourMs).code, 'ok');
  t.end();
});

t.test('whatever is remembered, deletes are taken', (t) => {
  const record = peerRecord({ revoked: serials(gonePeersMin, nowMs - 1) });
  const state = stateOf(record);
  t.equal(write(state, { type: 'peer.remove', tenant: acme, peer: record.id }, nowMs).code, 'no_content');
  t.end();
});
