/**
 * Samples the memory of each process every second, and says whether it grows: a program's heap in
 * use, and the resident memory of a server.
 */
import { readFileSync } from 'node:fs';
import type { World } from './world.ts';

interface Sample {
  readonly atMs: number;
  readonly bytes: number;
}

export interface Growth {
  readonly place: string;
  readonly fromBytes: number;
  readonly toBytes: number;
  readonly overMs: number;
}

export interface Memory {
  /** Growth of each process that lived long enough; a restart makes another process. */
  growths(): Growth[];
  stop(): void;
}

const sampleEveryMs = 1_000;
/** Time in which a program fills its caches and its heap. */
const warmUpMs = 20_000;
/** The first and the last samples that are compared; a process must live long enough for both. */
const windowMs = 10_000;

/** `undefined` if the process is gone, or the system is not Linux. */
export function rssBytes(pid: number): number | undefined {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}

const median = (samples: readonly Sample[]): number =>
  samples.map((each) => each.bytes).toSorted((left, right) => left - right)[Math.floor(samples.length / 2)] ?? NaN;

/** `undefined` if this process has not written it yet. */
function heapBytes(file: string, pid: number): number | undefined {
  try {
    const [by, bytes] = readFileSync(file, 'utf8').split(' ').map(Number);
    return by === pid ? bytes : undefined;
  } catch {
    return undefined;
  }
}

export function watchMemory(world: World): Memory {
  const lives = new Map<string, Sample[]>();
  const timer = setInterval(() => {
    for (const [place, process] of world.processes) {
      const { pid } = process.server();
      const file = world.heapFile(place);
      const bytes = file === undefined ? rssBytes(pid) : heapBytes(file, pid);
      if (bytes === undefined) continue;
      const key = `${place}/${pid}`;
      lives.set(key, [...(lives.get(key) ?? []), { atMs: performance.now(), bytes }]);
    }
  }, sampleEveryMs);
  return {
    growths: () =>
      [...lives].flatMap(([key, samples]) => {
        const [first, last] = [samples[0], samples.at(-1)];
        if (first === undefined || last === undefined) return [];
        const warmMs = first.atMs + warmUpMs;
        if (last.atMs - warmMs < 2 * windowMs) return [];
        const early = samples.filter(({ atMs }) => atMs >= warmMs && atMs < warmMs + windowMs);
        const late = samples.filter(({ atMs }) => atMs > last.atMs - windowMs);
        const place = key.split('/')[0] ?? key;
        return [{ place, fromBytes: median(early), toBytes: median(late), overMs: last.atMs - warmMs }];
      }),
    stop: () => clearInterval(timer),
  };
}
