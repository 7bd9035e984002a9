/** Time for which a wait knows a container to be up. */
import t from 'tap';
import { uptimes } from '../../../../gateway/streams/wait/handler.ts';
import type { StatusSeen } from '../../../../schemas/wire/answers.ts';
import { statusView } from '../../support.ts';

t.test('a run is up since it was seen, or for as long as its owner says; no wall clock decides', (t) => {
  let monotonicMs = 1_000_000;
  const upMs = uptimes({ monotonicMs: () => monotonicMs });
  const seen = (more: Partial<StatusSeen> = {}, passedMs = 1000): number => {
    monotonicMs += passedMs;
    return upMs({ ...(statusView('i', 'running') as unknown as StatusSeen), ...more });
  };
  t.equal(seen(), 0, 'its owner does not say');
  t.equal(seen(), 1000);
  t.equal(seen({ up_seconds: 7 }), 7000);
  t.equal(seen({ up_seconds: 0 }), 3000, 'another owner, which has just loaded it');
  t.equal(seen({ restart_count: 1, up_seconds: 0 }), 0, 'another run');
  t.equal(seen({ restart_count: 1, reason: 'unhealthy', up_seconds: 1 }), 1000);
  t.equal(seen({ restart_count: 1, reason: 'engine_unavailable', up_seconds: 9 }), 0);
  t.equal(seen({ restart_count: 1 }), 0);
  t.end();
});
