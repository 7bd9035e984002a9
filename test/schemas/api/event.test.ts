/** Types of events, as they are stored and as they are shown. */
import t from 'tap';
import { eventSeenBy, type Event } from '../../../schemas/api/event.ts';
import type { TenantId } from '../../../schemas/ids.ts';

const tenant = 'acme' as TenantId;
const event = { type: 'status', message: 'm', by: null } as unknown as Event;

t.test('an event of metadata that release 0.2.0 stored as one of the policy', (t) => {
  for (const type of ['labels_changed', 'project_changed'] as const) {
    const stored = { type: 'policy_changed', message: type } as const;
    t.match(eventSeenBy(tenant, { ...event, ...stored }), { type, message: null });
  }
  for (const [type, message] of [
    ['labels_changed', null],
    ['policy_changed', null],
    ['policy_changed', 'exited with code 1'],
    ['status', 'labels_changed'],
  ] as const)
    t.match(eventSeenBy(tenant, { ...event, type, message }), { type, message });
  t.end();
});
