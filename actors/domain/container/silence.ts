/** The effect of its host's silence, and of the end of it, on a container. Pure. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { Changes, TurnContext } from '../turn.ts';
import { eventOf } from './transitions.ts';

/**
 * Notes in the record what the event says.
 * @param on the silent host; `undefined` if it is heard again
 */
export function silence(record: ContainerRecord, on: HostKey | undefined, context: TurnContext): Changes {
  const { silentOn: _, ...heard } = record;
  const next: ContainerRecord = on === undefined ? heard : { ...record, silentOn: on };
  // These two are shown without regard to silence.
  const isShown = record.desired !== 'removed' && record.observed.status !== 'pending';
  const type = on === undefined ? 'status_known' : 'status_unknown';
  return {
    // Time in which the host was not heard proves nothing.
    ...(on === undefined ? { heard: { id: record.id, upSinceMs: context.servedMs } } : {}),
    records: [next],
    deletes: [],
    events: isShown ? [eventOf(type, next, context)] : [],
    effects: isShown ? [{ kind: 'changed', tenant: record.tenant, id: record.id }] : [],
  };
}
