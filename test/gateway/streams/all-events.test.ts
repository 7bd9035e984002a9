/** Places in the events of all tenants, and what of them is new to a reader. */
import t from 'tap';
import { newAmong, placeIn, textOfPlace, type TenantEvent } from '../../../gateway/streams/all-events.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { statusEvent } from '../support.ts';

const at = (seq: number, id: string): TenantEvent => ({
  seq,
  tenant: 'acme' as TenantId,
  event: { ...statusEvent(id, 'c' as ContainerId), by: null },
});

t.test('the id of a frame is a place, and nothing else is', (t) => {
  t.same(placeIn(textOfPlace({ seq: 69, id: '6-521-1' })), { seq: 69, id: '6-521-1' });
  for (const text of ['', '69', '6-521-1', '69.6-521', '-1.6-521-1', '69.6-521-1 ', `${'1'.repeat(16)}.6-521-1`])
    t.equal(placeIn(text), undefined, text);
  t.end();
});

t.test('an event that comes again in its partition is left out; partitions are apart', (t) => {
  const first = newAmong([at(1, '0-5-0'), at(1, '0-5-1'), at(2, '1-3-0'), at(3, '0-5-1'), at(3, '0-6-0')], {
    next: 4,
    given: new Map([['1', '1-2-9']]),
  });
  const ids = first.events.map(({ event }) => event.id);
  t.same(ids, ['0-5-0', '0-5-1', '1-3-0', '0-6-0']);
  t.same(
    first.position,
    { next: 4, given: new Map([['0', '0-6-0'], ['1', '1-3-0']]) }, // prettier-ignore
  );
  t.same(newAmong([at(4, '0-6-0'), at(5, '1-3-0')], first.position).events, []);
  t.end();
});
