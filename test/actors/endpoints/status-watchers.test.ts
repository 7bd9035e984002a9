/** For how long, and for how many containers, changes are announced. */
import t from 'tap';
import { StatusWatchers } from '../../../actors/endpoints/status-watchers.ts';
import { limits } from '../../../schemas/limits.ts';
import { containerId } from '../support.ts';

t.test('a container is watched for a while after its status was asked for', (t) => {
  const startMs = 1000;
  let nowMs = startMs;
  const watched = new StatusWatchers({ monotonicMs: () => nowMs });
  const [one, other] = [containerId(), containerId()];
  watched.asked(one);
  t.same([watched.has(one), watched.has(other)], [true, false]);
  nowMs = startMs + limits.watchedMs - 1;
  t.ok(watched.has(one));
  watched.asked(one);
  nowMs += limits.watchedMs - 1;
  t.ok(watched.has(one), 'asked for again');
  nowMs += 2;
  t.notOk(watched.has(one));
  t.ok(limits.watchedMs > 2 * limits.waitPollMs, 'one that waits asks more often');
  t.end();
});

t.test('of too many, the one that was asked for longest ago is forgotten', (t) => {
  const watched = new StatusWatchers({ monotonicMs: () => 0 });
  const ids = Array.from({ length: limits.watchedContainers + 1 }, () => containerId());
  const [first, second, third] = ids;
  for (const id of ids.slice(0, -1)) watched.asked(id);
  watched.asked(first!);
  watched.asked(ids.at(-1)!);
  t.same(
    [first!, second!, third!, ids.at(-1)!].map((id) => watched.has(id)),
    [true, false, true, true],
  );
  t.end();
});
