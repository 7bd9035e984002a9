/** Captured log lines, as an agent sends them and as a tenant reads them. */
import Type, { type Static } from 'typebox';
import { limits } from '../limits.ts';

export const LogEntry = Type.Object(
  {
    ts: Type.String({ format: 'date-time', description: 'When the engine read the line.' }),
    stream: Type.Enum(['stdout', 'stderr']),
    line: Type.String({ description: 'Without its newline. A line over 16 KiB is split into several entries.' }),
    seq: Type.Integer({ description: 'Rises with every line of a container: microseconds since 1970, made unique.' }),
  },
  { additionalProperties: false },
);
export type LogEntry = Static<typeof LogEntry>;

/**
 * One message of the stream LOGS. A block that is sent again after a lost acknowledgement has the
 * same `seq`s, so a reader drops lines that are not above the last one it returned.
 */
export const LogBlock = Type.Object(
  { v: Type.Literal(1), lines: Type.Array(LogEntry, { minItems: 1, maxItems: limits.logBlockLines }) },
  { additionalProperties: false },
);
export type LogBlock = Static<typeof LogBlock>;
