/**
 * Removal of containers that their owner gave away: a table of those that a host may remove, and
 * the property that it removes nothing else.
 */
import fc from 'fast-check';
import t from 'tap';
import type { StateRecord } from '../../../../actors/domain/records.ts';
import { goneFrom } from '../../../../actors/domain/host/strangers.ts';
import type { ContainerRecord, TombstoneRecord } from '../../../../schemas/api/container.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import type { Stranger } from '../../../../schemas/wire/host.ts';
import { containerId } from '../../support.ts';
import { acme, container, h1, h2, placedOn, stateOf } from '../../support/records.ts';

const id = containerId();
const stranger = (placement: number): Stranger => ({ tenant: acme, id, placement });
const history = [h1, h2];
const on = (host: HostKey, since: number, atMs?: number): ContainerRecord['placement'] => ({
  ...placedOn(host, 'platform', since),
  ...(atMs === undefined ? {} : { atMs }),
});
const record = (more: Partial<ContainerRecord>): ContainerRecord => container({ id, history, generation: 9, ...more });
const tombstone = (goneAtMs: number, more: Partial<TombstoneRecord> = {}): TombstoneRecord => ({
  kind: 'tombstone',
  id,
  tenant: acme,
  history,
  goneAtMs,
  idempotency: null,
  ...more,
});
const restoredMs = 5000;

interface Case {
  readonly of: StateRecord | undefined;
  readonly placement?: number;
  readonly incarnation?: number;
}
const cases: Readonly<Record<string, Case & { readonly isGone: boolean }>> = {
  'not known': { of: undefined, isGone: false },
  'placed here': { of: record({ placement: on(h1, 5, 6000) }), isGone: false },
  'placed elsewhere since': { of: record({ placement: on(h2, 5, 6000) }), isGone: true },
  'placed elsewhere before the copy was made': {
    of: record({ placement: on(h2, 2, 6000) }),
    placement: 3,
    isGone: false,
  },
  'placed elsewhere under the very generation of the copy': {
    of: record({ placement: on(h2, 3, 6000) }),
    placement: 3,
    isGone: false,
  },
  'placed elsewhere, by a release that noted no time': { of: record({ placement: on(h2, 5) }), isGone: true },
  'taken off its host': { of: record({ placement: { phase: 'unplaced', atMs: 6000 } }), isGone: true },
  'waits for a host, and the copy is of a later generation': {
    of: record({ placement: { phase: 'unplaced', atMs: 6000 } }),
    placement: 12,
    isGone: false,
  },
  deleted: { of: tombstone(6000), isGone: true },
  'placed elsewhere, and was never here': { of: record({ placement: on(h2, 5, 6000), history: [h2] }), isGone: false },
  'deleted, and was never here': { of: tombstone(6000, { history: [h2] }), isGone: false },
  'restored; placed elsewhere before that': {
    of: record({ placement: on(h2, 5, restoredMs) }),
    incarnation: restoredMs,
    isGone: false,
  },
  'restored; placed elsewhere after that': {
    of: record({ placement: on(h2, 5, restoredMs + 1) }),
    incarnation: restoredMs,
    isGone: true,
  },
  'restored; placed elsewhere by a release that noted no time': {
    of: record({ placement: on(h2, 5) }),
    incarnation: restoredMs,
    isGone: false,
  },
  'restored; deleted before that': { of: tombstone(restoredMs), incarnation: restoredMs, isGone: false },
  'restored; deleted after that': { of: tombstone(restoredMs + 1), incarnation: restoredMs, isGone: true },
  'restored; taken off its host before that': {
    of: record({ placement: { phase: 'unplaced', atMs: restoredMs } }),
    incarnation: restoredMs,
    isGone: false,
  },
};

for (const [name, { of, placement = 3, incarnation = 0, isGone }] of Object.entries(cases)) {
  t.test(`${name} → ${isGone ? 'it goes' : 'no word of its going'}`, (t) => {
    const state = stateOf(...(of === undefined ? [] : [of]));
    t.same(goneFrom(state, h1, [stranger(placement)], incarnation), isGone ? [stranger(placement)] : []);
    t.end();
  });
}

t.test('a damaged record gives nothing away', (t) => {
  const state = stateOf(tombstone(6000));
  state.quarantine(`container.${acme}.${id}`);
  t.same(goneFrom(state, h1, [stranger(3)], 0), []);
  t.end();
});

t.test('property: what goes was this host’s once, and left it after the copy was made and after any restore', (t) => {
  const ms = fc.integer({ min: 1, max: 20 });
  const host = fc.constantFrom(h1, h2);
  const placements = fc.oneof(
    fc.record({ phase: fc.constant('unplaced' as const), atMs: ms }),
    fc.tuple(host, ms, ms).map(([where, since, atMs]) => on(where, since, atMs)),
  );
  const records = fc.oneof(
    fc
      .record({ placement: placements, generation: ms, history: fc.array(host, { maxLength: 2 }) })
      .map((more) => record(more)),
    fc.tuple(ms, fc.array(host, { maxLength: 2 })).map(([goneAtMs, was]) => tombstone(goneAtMs, { history: was })),
    fc.constant(undefined),
  );
  fc.assert(
    fc.property(records, ms, fc.integer({ min: 0, max: 20 }), (of, placement, incarnation) => {
      const state = stateOf(...(of === undefined ? [] : [of]));
      if (goneFrom(state, h1, [stranger(placement)], incarnation).length === 0) return true;
      if (of === undefined || !('history' in of) || !of.history.includes(h1)) return false;
      const sinceRestore = (atMs: number | undefined) => incarnation === 0 || (atMs ?? 0) > incarnation;
      if (of.kind === 'tombstone') return sinceRestore(of.goneAtMs);
      const { placement: now } = of;
      const left = now.phase === 'unplaced' ? placement < of.generation : now.host !== h1 && placement < now.since;
      return left && sinceRestore(now.atMs);
    }),
    { numRuns: 2000 },
  );
  t.end();
});
