/** Announcements of changes: for how many containers, and for how long. */
import t from 'tap';
import { StatusWatchers, watchedMs, watchedContainers } from '../../../actors/endpoints/status-watchers.ts';
import { limits } from '../../../schemas/limits.ts';
import { containerId, tenantId } from '../support.ts';

const acme = tenantId('acme');

t.test('a container is watched for a while after its status was asked for', (t) => {
  const startMs = 1000;
  let nowMs = startMs;
  const watched = new StatusWatchers({ monotonicMs: () => nowMs });
  const [one, other] = [containerId(), containerId()];
  watched.asked(one);
  t.same([watched.has(acme, one), watched.has(acme, other)], [true, false]);
  nowMs = startMs + watchedMs - 1;
  t.ok(watched.has(acme, one));
  watched.asked(one);
  nowMs += watchedMs - 1;
  t.ok(watched.has(acme, one), 'asked for again');
  nowMs += 2;
  t.notOk(watched.has(acme, one));
  t.ok(watchedMs > 2 * limits.waitPollMs, 'one that waits asks more often');
  t.end();
});

t.test('of too many, the one that was asked for longest ago is forgotten', (t) => {
  const watched = new StatusWatchers({ monotonicMs: () => 0 });
  const ids = Array.from({ length: watchedContainers + 1 }, () => containerId());
  const [first, second, third] = ids;
  for (const id of ids.slice(0, -1)) watched.asked(id);
  watched.asked(first!);
  watched.asked(ids.at(-1)!);
  t.same(
    [first!, second!, third!, ids.at(-1)!].map((id) => watched.has(acme, id)),
    [true, false, true, true],
  );
  t.end();
});

t.test('of a tenant that somebody follows, all containers are watched', (t) => {
  const startMs = 1000;
  let nowMs = startMs;
  const watched = new StatusWatchers({ monotonicMs: () => nowMs });
  watched.followed(acme);
  t.ok(watched.has(acme, containerId()));
  t.notOk(watched.has(tenantId('rival'), containerId()));
  nowMs = startMs + watchedMs + 1;
  t.notOk(watched.has(acme, containerId()));
  t.ok(watchedMs > 2 * limits.streamPollMs, 'one that follows asks more often');
  t.end();
});
