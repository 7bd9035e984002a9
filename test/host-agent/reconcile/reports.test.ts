import t from 'tap';
import type { Observed as Reported } from '../../../host-agent/link/reporter.ts';
import { createReports } from '../../../host-agent/reconcile/reports.ts';
import { absent } from '../../../host-agent/docker/observed.ts';
import type { NetworkSeen } from '../../../schemas/api/container.ts';
import type { Wanted } from '../../../host-agent/desired/wanted.ts';
import { down, id, nowMs, restartState, seen, tenant, up, wanted } from '../support/decisions.ts';

function start(given: Wanted, { steadyMs = nowMs, network }: { steadyMs?: number; network?: NetworkSeen } = {}) {
  const reported: Reported[] = [];
  const reports = createReports({
    reporter: {
      set: (observed) => void reported.push(observed),
      all: () => reported,
      forget: (id) => void reported.splice(0, Infinity, ...reported.filter((each) => each.id !== id)),
    },
    workload: { wanted: () => given },
    tenantNetwork: network && { seen: () => network },
    clock: { nowMs: () => nowMs },
    steadyMs: () => steadyMs,
  });
  return { reports, reported };
}

t.test('a look is reported under the generation of its container', (t) => {
  const { reports, reported } = start(wanted('running'));
  reports.looked({ id, wanted: wanted('running'), observed: seen(up) }, restartState());
  t.match(reported, [{ tenant, id, generation: 3, description: { gone: false, observation: { status: 'running' } } }]);
  t.end();
});

t.test('a container that was made before its host had the network says so', (t) => {
  const ready: NetworkSeen = { state: 'ready', message: null };
  const said = (network: NetworkSeen, isNamed?: boolean) => {
    const { reports, reported } = start(wanted('running'), { network });
    const observed = seen(up);
    if (observed.kind === 'absent') throw new Error('it is there');
    const found = { ...observed.found, ...(isNamed === undefined ? {} : { isNamed }) };
    reports.looked({ id, wanted: wanted('running'), observed: { ...observed, found } }, restartState());
    return reported[0]?.description.observation.network;
  };
  t.same(said(ready, true), ready);
  t.same(said(ready, false), { ...ready, made_before: true });
  const away: NetworkSeen = { state: 'unavailable', message: 'why' };
  t.same(said(away, false), away);
  t.end();
});

t.test('orphans and ignored containers are not reported, and what was said of them is forgotten', (t) => {
  for (const want of ['nothing', 'ignored'] as const) {
    const { reports, reported } = start({ want });
    reports.looked({ id, wanted: wanted('prepared'), observed: seen(down()) }, restartState());
    t.equal(reported.length, 1);
    reports.looked({ id, wanted: { want }, observed: seen(up) }, restartState());
    reports.away([id], nowMs);
    t.same(reported, []);
  }
  t.end();
});

t.test('the next attempt is reported by the wall clock, in whole seconds of difference', (t) => {
  for (const [aheadMs, expected] of [
    [0, '2026-01-02T03:04:15.000Z'],
    [400, '2026-01-02T03:04:15.000Z'],
    [3_600_200, '2026-01-02T04:04:15.000Z'],
  ] as const) {
    const { reports, reported } = start(wanted('running'), { steadyMs: nowMs - aheadMs });
    const restart = restartState({ failures: 1, attempt: { phase: 'waiting', untilMs: nowMs + 10_000 } });
    reports.looked({ id, wanted: wanted('running'), observed: seen(down()) }, restart);
    t.equal(new Date(reported[0]?.description.observation.next_retry_at ?? 0).toISOString(), expected, `${aheadMs} ms`);
  }
  t.end();
});

t.test('while the engine is away, the last status stands', (t) => {
  const { reports, reported } = start(wanted('running'));
  reports.away([id], nowMs);
  t.match(reported[0]?.description.observation, { status: 'pending', reason: 'engine_unavailable' });
  reported.length = 0;
  reports.looked({ id, wanted: wanted('running'), observed: seen(up) }, restartState());
  reports.away([id], nowMs);
  t.match(reported[1]?.description.observation, { status: 'running', reason: 'engine_unavailable' });
  t.end();
});

t.test('a container that is gone as asked is reported as gone', (t) => {
  const removed = wanted('removed');
  const { reports, reported } = start(removed);
  reports.looked({ id, wanted: removed, observed: absent }, restartState({ want: 'removed' }));
  t.match(reported, [{ description: { gone: true } }]);
  t.end();
});
