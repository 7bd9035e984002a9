/** Captured log lines, as an agent sends them and as a tenant reads them. */
import Type, { type Static } from 'typebox';
import { ContainerId } from '../ids.ts';
import { limits } from '../limits.ts';

export const LogEntry = Type.Object(
  {
    ts: Type.String({ format: 'date-time', description: 'Time at which the engine read the line.' }),
    stream: Type.Enum(['stdout', 'stderr']),
    line: Type.String({
      description: 'Text of the line, without its newline. A line over 16 KiB is split into several entries.',
    }),
    seq: Type.Integer({
      description: 'Position of the line: microseconds since 1970, unique and rising within a container.',
    }),
  },
  { additionalProperties: false },
);
export type LogEntry = Static<typeof LogEntry>;

/** A line in a list over several containers. */
export const ContainerLogEntry = Type.Object(
  { container_id: ContainerId, name: Type.String({ description: 'Of the container.' }), ...LogEntry.properties },
  { additionalProperties: false },
);
export type ContainerLogEntry = Static<typeof ContainerLogEntry>;

/**
 * One message of the stream LOGS. A block that is sent again after a lost acknowledgement has the
 * same `seq`s, so a reader drops lines that are not above the last one it returned.
 */
export const LogBlock = Type.Object(
  { v: Type.Literal(1), lines: Type.Array(LogEntry, { minItems: 1, maxItems: limits.logBlockLines }) },
  { additionalProperties: false },
);
export type LogBlock = Static<typeof LogBlock>;
