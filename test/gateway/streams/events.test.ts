import t from 'tap';
import { v7 as uuidv7 } from 'uuid';
import {
  beginning,
  followedBy,
  resetOf,
  unseen,
  withRecent,
  type PlacedEvent,
} from '../../../gateway/streams/events.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { statusEvent } from '../support.ts';

const place = (id: string): PlacedEvent => ({
  seq: 1,
  event: { ...statusEvent(id, uuidv7() as ContainerId), by: null },
});
const ids = ({ events }: { readonly events: readonly PlacedEvent[] }): string[] => events.map(({ event }) => event.id);
const first = unseen(['0-1-0', '0-1-1', '0-1-0', 'x', '0-2-0'].map(place), beginning);
const known = ['0-2-0', '0-3-0', '0-10-0'].map((id) => place(id).event);
const page = { events: first.events, position: { next: 8, given: '0-2-0' }, more: false, isWhole: true };

t.test('an event that is published twice is given once', (t) => {
  t.same(ids(first), ['0-1-0', '0-1-1', '0-2-0']);
  t.same(ids(unseen(['0-1-0', '0-2-0', '0-2-1'].map(place), first.position)), ['0-2-1']);
  t.end();
});

t.test('the owner’s events follow those of the stream, each once', (t) => {
  t.same(ids(withRecent(page, known, 3)), ['0-2-0', '0-3-0', '0-10-0']);
  t.same(withRecent(page, known, 3).older, { at: 7, id: '0-2-0' }, 'the page before');
  t.equal(withRecent(page, known, 5).older, undefined, 'all are given');
  t.same(withRecent({ ...page, isWhole: false }, known, 5).older, { at: 7, id: '0-1-0' });
  t.same(withRecent(page, known, 3).position, { next: 8, given: '0-10-0' });
  t.same(withRecent({ ...page, events: [], position: beginning }, [], 3).position, beginning);
  const beyond = followedBy(page, { events: known, more: true });
  t.same(ids(beyond), [...ids(first), '0-3-0', '0-10-0']);
  t.match(beyond, { more: true, position: { next: 8, given: '0-10-0' } });
  t.same(
    followedBy({ ...page, more: true }, { events: known, more: false }),
    { ...page, more: true },
    'not before its turn',
  );
  t.end();
});

t.test('a follower goes on behind what is kept, and hears of what is not', (t) => {
  const rows: [id: string, oldest: string | undefined, reset: string | undefined][] = [
    ['1-5-0', '1-5-0', undefined],
    ['1-9-3', '1-5-0', undefined],
    ['1-4-9', '1-5-0', 'expired'],
    ['1-5-0', undefined, 'expired'],
    ['1-10-0', '1-5-0', 'unknown'],
    ['2-5-0', '1-5-0', 'unknown'],
    ...['', '12', '12.1-5-0', '1-5', '1-5-0 ', `1-${'9'.repeat(16)}-4`].map((id): [string, string, string] => [
      id,
      '1-5-0',
      'unknown',
    ]),
  ];
  for (const [id, oldest, reset] of rows) t.equal(resetOf(id, oldest, 9), reset, `${id} of ${oldest}`);
  t.end();
});
