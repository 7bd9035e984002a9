/** What is remembered of things that are gone is bounded for each tenant: when a create is refused, and until when. */
import t from 'tap';
import type { StateRecord } from '../../actors/state.ts';
import { expired } from '../../actors/sweep.ts';
import { gonePeersMax, goneContainersMax, peersGoneAnHourMax } from '../../actors/tenant/remembered.ts';
import { replyOf } from '../../gateway/respond.ts';
import type { TombstoneRecord } from '../../schemas/container.ts';
import { limits } from '../../schemas/limits.ts';
import type { PeerRevocation, PeerTombstoneRecord } from '../../schemas/peer.ts';
import { containerId, specOf } from './support.ts';
import { acme, apply, stateOf } from './support/records.ts';
import { home, keysOf, madePeer, peerId, peerRecord, write } from './support/vpn.ts';

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

t.test('the bounds grow with the caps, within limits', (t) => {
  for (const [cap, containers, peers, anHour] of [
    [0, 2000, 2000, 60],
    [20, 2000, 4000, 60],
    [100, 10_000, 20_000, 200],
    [10 ** 9, 100_000, 100_000, 100_000],
    [null, 100_000, 100_000, 100_000],
  ] as const) {
    t.equal(goneContainersMax(cap), containers, `containers, cap ${cap}`);
    t.equal(gonePeersMax(cap), peers, `peers, cap ${cap}`);
    t.equal(peersGoneAnHourMax(cap), anHour, `peers an hour, cap ${cap}`);
  }
  t.end();
});

t.test('a create is refused until the oldest tombstone is forgotten', (t) => {
  const oldestMs = nowMs - limits.tombstoneTtlMs + 90_000;
  const state = stateOf(...Array.from({ length: limits.goneContainersMin }, (_, index) => tombstone(oldestMs + index)));
  const create = (atMs: number) =>
    write(
      state,
      { type: 'container.create', tenant: acme, id: containerId(), spec: specOf('c'), idempotency: null },
      atMs,
    );
  t.match(create(nowMs), { code: 'rate_limited', body: { error: 'rate_limited', retry_after_seconds: 90 } });
  const thenMs = nowMs + 90_000;
  apply(state, expired(state, thenMs));
  t.equal(create(thenMs).code, 'created', 'as it said');
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
  const create = (...records: readonly StateRecord[]) =>
    write(stateOf(...records), { type: 'peer.create', tenant: acme, peer: peerId(), made: madePeer('p', 9) }, nowMs);
  const many = (count: number, goneAtMs: number) => Array.from({ length: count }, () => peerTombstone(goneAtMs));
  const lately = limits.peersGoneAnHourMin;
  t.equal(create(...many(lately - 1, nowMs - 1)).code, 'created');
  t.equal(create(...many(lately + 5, nowMs - hourMs)).code, 'created', 'those of an hour ago do not count');
  t.match(create(...many(lately, nowMs - hourMs + 7000)), { code: 'rate_limited', body: { retry_after_seconds: 7 } });

  const max = limits.gonePeersMin;
  const old = nowMs - 10 * hourMs;
  t.equal(create(peerTombstone(old, serials(max - 2, old))).code, 'created');
  t.match(
    create(peerTombstone(old, serials(max - 1, old))),
    { code: 'rate_limited', body: { message: /operator/, retry_after_seconds: 100 * 3600 } },
    'until the certificate of the first ends',
  );
  t.match(
    create(peerRecord({ renewed: serials(max, old) }, 'other')),
    { code: 'rate_limited' },
    'nor while they are to be refused later',
  );
  t.end();
});

t.test('a rotation is refused', (t) => {
  const rotate = (revoked: PeerRevocation[]) => {
    const record = peerRecord({ revoked });
    const ask = {
      type: 'peer.rotate',
      tenant: acme,
      peer: record.id,
      replaces: record.certificate.serial,
      keys: keysOf(),
    };
    return write(stateOf(record), ask as Parameters<typeof write>[1], nowMs);
  };
  const most = limits.peerRotationsAnHour;
  t.equal(rotate(serials(most - 1, nowMs - 1)).code, 'ok');
  t.equal(rotate(serials(most, nowMs - hourMs)).code, 'ok');
  t.match(rotate(serials(most, nowMs - hourMs + 5000)), { code: 'rate_limited', body: { retry_after_seconds: 5 } });
  const kept = limits.peerRevocationsKept;
  t.match(rotate(serials(kept, 1)), { code: 'conflict', body: { message: /make another/ } });
  const ended = serials(kept, 1).map((one) => ({ ...one, notAfterMs: nowMs }));
  t.equal(rotate(ended).code, 'ok', 'certificates that have expired do not count');
  t.end();
});

t.test('whatever is remembered, deletes are taken', (t) => {
  const record = peerRecord({ revoked: serials(limits.gonePeersMin, nowMs - 1) });
  const state = stateOf(record);
  t.equal(write(state, { type: 'peer.remove', tenant: acme, peer: record.id }, nowMs).code, 'no_content');
  t.end();
});
