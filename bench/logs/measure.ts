/**
 * Lines written at a steady pace by one process and read by another, and what the parts between
 * them use.
 */
import { startChild } from './child.ts';

import type { LinesRead, LogSource, ReaderOrder, ReaderWord } from './reader.ts';
import type { Source } from './sources.ts';
import { useOf } from './usage.ts';
import type { WriterOrder, WriterWord } from './writer.ts';

const deadlineMs = 60_000;
/** For what was written and is not read yet. */
const drainMs = 20_000;

export interface Load {
  readonly sources: readonly Source[];
  readonly from: LogSource;
  /** Of all together. */
  readonly linesPerSecond: number;
  readonly seconds: number;
  readonly pids: ReadonlyMap<string, number>;
}

export interface Part {
  readonly name: string;
  /** From the first line written to the last one read. */
  readonly cpuSeconds: number;
  /** At the end. */
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
  const reader = startChild<ReaderWord>('reader');
  const writer = startChild<WriterWord>('writer');
  try {
    const follow: ReaderOrder = { source: from, ids: sources.map(({ id }) => id), linesEach };
    const ports = sources.map(({ port }) => port);
    const write: WriterOrder = { ports, linesPerSecond: linesPerSecond / sources.length, linesEach };
    reader.say(follow);
    await reader.hear('ready', deadlineMs);
    writer.say(write);
    await writer.hear('ready', deadlineMs);

    const used = [...pids, ['writer', writer.pid] as const, ['reader', reader.pid] as const].map(([name, pid]) => ({
      name,
      pid,
      before: useOf(pid),
    }));
    const reading = reader.hear('read', 2 * deadlineMs);
    writer.say({});
    const { fromMs, toMs } = await writer.hear('written', deadlineMs);
    const givingUp = setTimeout(() => reader.say({}), drainMs);
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
