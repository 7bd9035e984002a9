/**
 * One process writes lines at a steady rate, another reads them; measures the CPU and memory of the
 * parts in between.
 */
import { startChild } from './child.ts';

import type { LinesRead, LogSource, ReaderOrder, ReaderMessage } from './reader.ts';
import type { Source } from './sources.ts';
import { useOf } from '../usage.ts';
import type { WriterOrder, WriterMessage } from './writer.ts';

const deadlineMs = 60_000;
/** Time for reading the remaining lines after the last one is written. */
const drainMs = 20_000;

export interface Load {
  readonly sources: readonly Source[];
  readonly from: LogSource;
  /** Total of all sources. */
  readonly linesPerSecond: number;
  readonly seconds: number;
  readonly pids: ReadonlyMap<string, number>;
}

export interface Part {
  readonly name: string;
  /** Used from the first line written to the last line read. */
  readonly cpuSeconds: number;
  /** Resident memory at the end. */
  readonly memBytes: number;
}

export interface Measured {
  readonly lines: number;
  readonly writtenFromMs: number;
  readonly writtenPerSecond: number;
  readonly read: LinesRead;
  readonly readPerSecond: number;
  readonly parts: readonly Part[];
}

export async function measure({ sources, from, linesPerSecond, seconds, pids }: Load): Promise<Measured> {
  const linesEach = Math.round((linesPerSecond * seconds) / sources.length);
  const reader = startChild<ReaderMessage>('reader');
  const writer = startChild<WriterMessage>('writer');
  try {
    const follow: ReaderOrder = { source: from, ids: sources.map(({ id }) => id), linesEach };
    const ports = sources.map(({ port }) => port);
    const write: WriterOrder = { ports, linesPerSecond: linesPerSecond / sources.length, linesEach };
    reader.send(follow);
    await reader.receive('ready', deadlineMs);
    writer.send(write);
    await writer.receive('ready', deadlineMs);

    const used = [...pids, ['writer', writer.pid] as const, ['reader', reader.pid] as const].map(([name, pid]) => ({
      name,
      pid,
      before: useOf(pid),
    }));
    const reading = reader.receive('read', 2 * deadlineMs);
    writer.send({});
    const { fromMs, toMs } = await writer.receive('written', deadlineMs);
    const givingUp = setTimeout(() => reader.send({}), drainMs);
    const { read } = await reading.finally(() => clearTimeout(givingUp));
    const lines = linesEach * sources.length;
    return {
      lines,
      writtenFromMs: fromMs,
      writtenPerSecond: (lines * 1000) / (toMs - fromMs),
      read,
      readPerSecond: (read.lines * 1000) / (read.toMs - fromMs),
      parts: used.map(({ name, pid, before }) => {
        const { cpuSeconds, memBytes } = useOf(pid);
        return { name, cpuSeconds: cpuSeconds - before.cpuSeconds, memBytes };
      }),
    };
  } finally {
    await Promise.all([reader.stop(), writer.stop()]);
  }
}
