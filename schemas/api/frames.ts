/** Frames of the streams, with `data` as the JSON that it is. */
import Type, { type Static, type TSchema } from 'typebox';
import { ContainerItem } from './container.ts';
import { Event, OperatorEvent } from './event.ts';
import { LogEntry } from './log.ts';
import { nullable } from './nullable.ts';
import { ContainerStats } from './usage/stats.ts';
import { ContainerId } from '../ids.ts';

const closed = { additionalProperties: false } as const;

/** The reason why a stream does not go on behind the `Last-Event-ID` of its client. */
export const resetReasons = ['unknown', 'expired'] as const;
export type ResetReason = (typeof resetReasons)[number];

export const StreamReset = Type.Object(
  {
    reason: Type.Enum([...resetReasons], {
      description: '`unknown`: this stream has no such id. `expired`: the frames behind it are no longer kept.',
    }),
    oldest: nullable(
      Type.String({ description: 'Id of the oldest that is kept, with which the stream goes on. Null if none is.' }),
    ),
  },
  closed,
);
export type StreamReset = Static<typeof StreamReset>;

/**
 * The reason why a stream ended, in its last frame. A client that resumes after `done` only gets
 * `done` again.
 */
export const endReasons = ['done', 'unauthenticated', 'stopping'] as const;
export type EndReason = (typeof endReasons)[number];

export const StreamEnd = Type.Object({ reason: Type.Enum([...endReasons]) }, closed);

const id = Type.String({ description: 'Value of `Last-Event-ID` with which a stream goes on behind this frame.' });

const frame = <Name extends string, Data extends TSchema>(event: Name, data: Data) =>
  Type.Object({ event: Type.Literal(event), data }, closed);
const placed = <Name extends string, Data extends TSchema>(event: Name, data: Data) =>
  Type.Object({ id, event: Type.Literal(event), data }, closed);

const reset = frame('reset', StreamReset);
const end = frame('end', StreamEnd);
const position = Type.Object({ position: Type.String() }, closed);

export const LogFrame = Type.Union([placed('log', LogEntry), reset, end], {
  description: 'Its `id` is the `seq` of the line.',
});
export const EventFrame = Type.Union([placed('event', Event), reset, end], {
  description: 'Its `id` is that of the event.',
});
export const OperatorEventFrame = Type.Union([placed('event', OperatorEvent), reset, end], {
  description: 'Its `id` is `<position>.<event>`, and no event’s own: a position in the stream of all tenants.',
});
export const StatsFrame = Type.Union([frame('stats', ContainerStats), end]);
const watched = { ...closed, description: 'The last one of a batch has an `id`.' };
export const WatchFrame = Type.Union([
  Type.Object({ id: Type.Optional(id), event: Type.Literal('item'), data: ContainerItem }, watched),
  Type.Object(
    { id: Type.Optional(id), event: Type.Literal('removed'), data: Type.Object({ id: ContainerId }, closed) },
    watched,
  ),
  placed('synced', position),
  placed('heartbeat', position),
  reset,
  end,
]);
