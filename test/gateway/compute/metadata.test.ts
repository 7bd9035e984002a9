/** Labels beside events: how often the owner is asked for them. */
import t from 'tap';
import { FollowedMetadata, followedMetadataBytes } from '../../../gateway/compute/metadata.ts';
import type { Event, EventType } from '../../../schemas/api/event.ts';
import type { Metadata } from '../../../schemas/api/fields/container.ts';
import type { ContainerId } from '../../../schemas/ids.ts';

const [a, b] = ['a', 'b'] as ContainerId[] as [ContainerId, ContainerId];
const eventOf = (container_id: ContainerId, type: EventType = 'status'): Event => ({ container_id, type }) as Event;

function follower(stored: Map<ContainerId, Partial<Metadata>>) {
  const asked: (readonly ContainerId[])[] = [];
  const followed = new FollowedMetadata();
  return {
    asked,
    labelsOf: async (...events: readonly Event[]) => {
      const found = await followed.of(events, async (ids) => {
        asked.push(ids);
        return Promise.resolve(new Map([...stored].filter(([id]) => ids.includes(id))));
      });
      return Object.fromEntries([...found].map(([id, { labels }]) => [id, labels]));
    },
  };
}

t.test('a follower asks once for a container, and again when its labels have changed', async (t) => {
  const stored = new Map<ContainerId, Partial<Metadata>>([[a, { labels: { team: 'a' } }]]);
  const { asked, labelsOf } = follower(stored);
  t.same(await labelsOf(eventOf(a), eventOf(a)), { a: { team: 'a' } });
  t.same(await labelsOf(eventOf(a), eventOf(b)), { a: { team: 'a' }, b: undefined }, 'one is not known');
  stored.set(a, { labels: { team: 'b' } });
  t.same(await labelsOf(eventOf(a)), { a: { team: 'a' } });
  t.same(asked, [[a], [b]]);
  t.same(await labelsOf(eventOf(a, 'labels_changed')), { a: { team: 'b' } });
  t.same(asked.slice(2), [[a]]);
  await labelsOf(eventOf(a, 'project_changed'));
  await labelsOf(eventOf(a, 'policy_changed'));
  t.same(asked.slice(3), [[a]]);
});

t.test('its memory has a bound, and a page is whole nevertheless', async (t) => {
  const labels = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`k${at}`, 'v'.repeat(256)]));
  const ids = Array.from({ length: 10 }, (_, at) => String(at) as ContainerId);
  const { asked, labelsOf } = follower(new Map(ids.map((id) => [id, { labels }])));
  t.ok(JSON.stringify(labels).length * ids.length > followedMetadataBytes);
  for (const page of [1, 2]) {
    const found = await labelsOf(...ids.map((id) => eventOf(id)));
    t.same(
      Object.values(found),
      ids.map(() => labels),
      `page ${page}`,
    );
  }
  t.ok(asked[1] !== undefined && asked[1].length > 0 && asked[1].length < ids.length, 'some were remembered');
});
