/** Types of events, as they are stored and as they are shown. */
import t from 'tap';
import { eventSeenBy, kindToStore, type Event } from '../../../schemas/api/event.ts';
import type { TenantId } from '../../../schemas/ids.ts';

const tenant = 'acme' as TenantId;
const event = { type: 'status', message: 'm', by: null } as unknown as Event;

t.test('an event of metadata is stored as one that the last release knows', (t) => {
  for (const type of ['labels_changed', 'project_changed'] as const) {
    const stored = kindToStore({ type, message: 'of its last run' });
    t.same(stored, { type: 'policy_changed', message: type });
    t.match(eventSeenBy(tenant, { ...event, ...stored }), { type, message: null });
    t.match(
      eventSeenBy(tenant, { ...event, type, message: null }),
      { type, message: null },
      'as the next release does',
    );
  }
  for (const [type, message] of [
    ['policy_changed', null],
    ['policy_changed', 'exited with code 1'],
    ['status', 'labels_changed'],
  ] as const) {
    t.same(kindToStore({ type, message }), { type, message });
    t.match(eventSeenBy(tenant, { ...event, type, message }), { type, message });
  }
  t.end();
});
