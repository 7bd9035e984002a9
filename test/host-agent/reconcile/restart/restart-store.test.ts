import t from 'tap';
import { fromStored, toStored } from '../../../../host-agent/reconcile/restart/restart-store.ts';
import { nowMs, restartState } from '../../support/decisions.ts';

t.test('the rest of a wait survives a restart, whatever the wall clock does', (t) => {
  const maxWaitMs = 60_000;
  const waiting = restartState({ failures: 4, attempt: { phase: 'waiting', untilMs: nowMs + 8000 } });
  const stored = toStored(waiting, { wallMs: () => nowMs, steadyMs: () => nowMs, maxWaitMs });
  for (const [name, passedMs, leftMs] of [
    ['at once', 0, 8000],
    ['after three seconds', 3000, 5000],
    ['after it is over', 9000, 0],
    ['after the clock was set back by an hour', -3_600_000, 8000],
    ['after the clock was set forward by an hour', 3_600_000, 0],
  ] as const) {
    const steadyMs = () => 77;
    const restart = fromStored(stored, { wallMs: () => nowMs + passedMs, steadyMs, maxWaitMs });
    t.match(restart, { failures: 4, attempt: { phase: 'waiting', untilMs: 77 + leftMs } }, name);
  }
  const old = { ...stored, attempt: { phase: 'waiting', untilMs: nowMs + 7_200_000 } } as const;
  t.match(
    fromStored(old, { wallMs: () => nowMs, steadyMs: () => 0, maxWaitMs }),
    { attempt: { untilMs: maxWaitMs } },
    'from before 0.1.0, after the clock was set back',
  );
  t.end();
});
