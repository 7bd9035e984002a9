/** Something that happened to a container, kept for `eventAgeMs`. */
import Type, { type Static } from 'typebox';
import { Author, authorSeenBy } from './audit/line.ts';
import { ContainerStatus, Reason } from './container.ts';
import { metadataNames, notedNames, optionalOf, type MetadataName, type NotedName } from './fields/container.ts';
import { ContainerId, HostKey, TenantId } from '../ids.ts';
import { nullable } from './nullable.ts';

export const eventTypes = [
  'created',
  'start_requested',
  'stop_requested',
  'delete_requested',
  'operator_changed',
  'update_requested',
  'updated',
  'update_failed',
  'policy_changed',
  'labels_changed',
  'project_changed',
  'aliases_changed',
  'secrets_changed',
  'secret_changed',
  'registry_changed',
  'placed',
  'unplaced',
  'status',
  'status_unknown',
  'status_known',
  'removed',
] as const;
export type EventType = (typeof eventTypes)[number];

/** The event of a change of metadata, or of a part that no host knows: it makes no generation. */
export const metadataEvent = (name: MetadataName | NotedName) => `${name}_changed` as const satisfies EventType;
const metadataEvents: readonly string[] = [...metadataNames, ...notedNames].map(metadataEvent);
export const isMetadataEvent = (type: string): type is ReturnType<typeof metadataEvent> =>
  metadataEvents.includes(type);

/**
 * An event without its author, as the stream EVENTS and journals have it: readers refuse further
 * fields.
 */
export const EventBody = Type.Object(
  {
    id: Type.String({
      description: '`<partition>-<journal entry>-<index>`: the same event has the same id wherever it is read.',
    }),
    ts: Type.String({ format: 'date-time' }),
    type: Type.Enum([...eventTypes]),
    container_id: ContainerId,
    name: Type.String(),
    generation: Type.Integer(),
    host_key: nullable(HostKey),
    status: ContainerStatus,
    reason: nullable(Reason),
    message: nullable(Type.String()),
    exit_code: nullable(Type.Integer()),
    request_id: nullable(Type.String()),
  },
  { additionalProperties: false },
);
export type EventBody = Static<typeof EventBody>;

/** With its author, and with what its container has beside what runs now; absent if not known. */
export const Event = Type.Object(
  {
    ...EventBody.properties,
    by: Type.Union([Author, Type.Null()], {
      description: 'Subject that caused the event. Null if a host, a policy or the platform did.',
    }),
    ...optionalOf(metadataNames),
  },
  { additionalProperties: false },
);
export type Event = Static<typeof Event>;

/** An event in the stream of all tenants. */
export const OperatorEvent = Type.Object(
  { tenant_id: TenantId, ...EventBody.properties, by: Event.properties.by },
  { additionalProperties: false },
);
export type OperatorEvent = Static<typeof OperatorEvent>;

/**
 * The type and the message of a stored event. Release 0.2.0 stored an event of metadata as one of
 * the policy, with its type as the message.
 */
const kindOf = ({ type, message }: Pick<EventBody, 'type' | 'message'>): Pick<EventBody, 'type' | 'message'> =>
  type === 'policy_changed' && message !== null && isMetadataEvent(message)
    ? { type: message, message: null }
    : { type, message };

/** The event as a client sees it: without the address of an operator. */
export const eventSeenBy = (tenant: TenantId, event: Event): Event => ({
  ...event,
  ...kindOf(event),
  by: event.by === null ? null : authorSeenBy(tenant, event.by),
});

/** The event of a tenant as an operator sees it. */
export const eventSeenByOperators = (tenant_id: TenantId, event: Event): OperatorEvent => ({
  tenant_id,
  ...event,
  ...kindOf(event),
});
