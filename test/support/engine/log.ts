/**
 * The log of a simulated container, and its frames in the raw stream of the Docker Engine API
 * ("ContainerAttach", stream format), each with the time of its line.
 */
import { timestamp } from '../../../lib/time/timestamp.ts';

export interface LogRecord {
  /** Since 1970; no two records of a container share one. */
  readonly micros: number;
  readonly text: string;
}

const headerBytes = 8;
const stdout = 1;

export function frameOf({ micros, text }: LogRecord): Buffer {
  const seconds = timestamp(Math.floor(micros / 1_000_000) * 1000).slice(0, 19);
  const stamp = `${seconds}.${String(micros % 1_000_000).padStart(6, '0')}000Z`;
  const payload = Buffer.from(`${stamp} ${text}\n`);
  const header = Buffer.alloc(headerBytes);
  header[0] = stdout;
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

/** @param since of the API: seconds and their fraction, inclusive; "0" is the beginning */
export function recordsSince(log: readonly LogRecord[], since: string): readonly LogRecord[] {
  const [seconds = '0', fraction = ''] = since.split('.');
  const fromMicros = Number(seconds) * 1_000_000 + Number(fraction.padEnd(6, '0').slice(0, 6));
  return log.filter(({ micros }) => micros >= fromMicros);
}
