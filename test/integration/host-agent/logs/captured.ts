/** The log lines that an agent has sent, as a tenant reads them. */
import type { ContainerId } from '../../../../schemas/ids.ts';
import type { LogEntry } from '../../../../schemas/api/log.ts';
import { until } from '../../../support/until.ts';
import type { ControlPlane } from '../../../host-agent/support/control-plane.ts';

/** Drops repeated lines, as a reader does: those not above the last (schemas/api/log.ts). */
export function asRead(captured: readonly LogEntry[]): LogEntry[] {
  let last = 0;
  return captured.filter(({ seq }) => {
    if (seq <= last) return false;
    last = seq;
    return true;
  });
}

/** A line always has the same number, and no number is on two lines. */
export function conflicts(captured: readonly LogEntry[]): string[] {
  const known = new Map<number, string>();
  return captured.flatMap(({ seq, line, stream }) => {
    const text = `${stream} ${line}`;
    const before = known.get(seq);
    known.set(seq, text);
    return before === undefined || before === text ? [] : [`${seq}: ${before} and ${text}`];
  });
}

/** All lines captured from a container, once those that a tenant reads are enough. */
export const linesOf = async (
  controlPlane: ControlPlane,
  id: ContainerId,
  enough: (read: LogEntry[]) => boolean,
  deadlineMs?: number,
) =>
  until(
    'the captured lines',
    async () => {
      const captured = await controlPlane.capturedLines(id);
      return enough(asRead(captured)) ? captured : undefined;
    },
    undefined,
    deadlineMs,
  );

/** The numbers behind a prefix, in the order of the lines. */
export const counting = (entries: readonly LogEntry[], prefix: string): number[] =>
  entries.filter(({ line }) => line.startsWith(prefix)).map(({ line }) => Number(line.slice(prefix.length)));
export const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);
export const has = (text: string) => (read: LogEntry[]) => read.some(({ line }) => line === text);
