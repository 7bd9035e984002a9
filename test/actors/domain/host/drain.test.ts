import t from 'tap';
import { drain, drainStopMs } from '../../../../actors/domain/host/drain.ts';
import type { FleetView } from '../../../../actors/domain/turn.ts';
import type { DrainShare } from '../../../../schemas/api/drain.ts';
import { limits } from '../../../../schemas/limits.ts';
import {
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  observation,
  placedOn,
  region,
  stateOf,
} from '../../support/records.ts';

const drained = { draining: true, schedulable: false } as const;
const fleet = fleetOf(fleetHost(h1, drained), fleetHost(h2));
const alone = fleetOf(fleetHost(h1, drained));
const nowMs = 1_000_000;

function shareOf(state: Parameters<typeof drain>[0], seen: FleetView = fleet): DrainShare {
  const ask = { type: 'host.drain' as const, partition: 0, of: h1, rid: 'r', budgetMs: 1 };
  return (JSON.parse(drain(state, ask, contextOf(seen, nowMs)).reply.body) as { data: DrainShare }).data;
}

t.test('a container on a drained host: moving, waiting for its turn, or blocked', (t) => {
  const preparing = { host: h2, region: region('default'), since: 3, atMs: nowMs };
  const rows: [string, Parameters<typeof container>[0], FleetView, object][] = [
    ['waits for its turn', {}, fleet, { left: 1, moving: 0, blocked: [] }],
    ['is prepared elsewhere', { preparing }, fleet, { left: 1, moving: 1, blocked: [] }],
    ['pinned', { placement: placedOn(h1, 'tenant') }, fleet, { left: 1, blocked: [{ reason: 'pinned' }] }],
    ['no room elsewhere', {}, alone, { left: 1, blocked: [{ reason: 'no_host' }] }],
    [
      'cannot be made elsewhere',
      { preparing: { ...preparing, givenUp: 'image_not_found' }, rejections: [{ host: h2, atMs: nowMs }] },
      fleet,
      { left: 1, moving: 0, blocked: [{ reason: 'image_not_found' }] },
    ],
    ['stopped', { desired: 'stopped', observed: observation('stopped') }, alone, { left: 1, blocked: [] }],
    ['being removed', { desired: 'removed' }, alone, { left: 1, blocked: [] }],
    [
      'the engine is away',
      {},
      fleetOf(fleetHost(h1, { ...drained, hasEngine: false }), fleetHost(h2)),
      { blocked: [{ reason: 'engine_unavailable' }] },
    ],
    [
      'the host is silent',
      {},
      fleetOf(fleetHost(h1, { ...drained, condition: 'silent' }), fleetHost(h2)),
      { blocked: [{ reason: 'host_silent' }] },
    ],
    ['on another host', { placement: placedOn(h2) }, fleet, { left: 0, moving: 0, blocked: [] }],
  ];
  for (const [name, record, seen, share] of rows) t.match(shareOf(stateOf(container(record)), seen), share, name);
  const moved = { placement: placedOn(h2, 'platform', 3), generation: 3 };
  for (const [agoMs, blocked] of [
    [0, []],
    [drainStopMs, [{ reason: 'stopping' }]],
  ] as const) {
    const leaving = { host: h1, since: 2, atMs: nowMs - agoMs };
    t.match(shareOf(stateOf(container({ ...moved, leaving }))), { left: 1, moving: 1, blocked }, 'it stops here');
  }
  t.end();
});

t.test('the list of what is blocked is bounded; the count is not', (t) => {
  const count = limits.drainBlocked + 5;
  const pinned = Array.from({ length: count }, (_, index) =>
    container({ placement: placedOn(h1, 'tenant') }, `c${index}`),
  );
  const share = shareOf(stateOf(...pinned));
  t.same([share.left, share.blocked.length], [count, limits.drainBlocked]);
  t.end();
});
