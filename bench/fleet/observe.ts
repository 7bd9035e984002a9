/** Observes a running fleet: CPU and memory of processes, counters of NATS, and events. */
import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import Type from 'typebox';
import { sleep } from '../../lib/time/backoff.ts';
import { decoder } from '../../lib/decode.ts';
import { readStream } from '../../lib/nats/direct-reads.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { EventBody } from '../../schemas/api/event.ts';
import type { Nats } from '../../dev/servers/nats.ts';
import { useOf } from '../usage.ts';
import { asControlPlane } from '../messages.ts';
import { roles, type FleetWorld, type Role } from './world.ts';

const decodeEvents = decoder(Type.Array(EventBody));

const askMs = 10_000;
const settleMs = 60_000;
const pollMs = 20;
const rereadMs = 1_000;
const findBytes = 64 * 1024 ** 2;

export type CpuSeconds = Readonly<Record<Role | 'load', number>>;

export function cpuNow(world: FleetWorld): CpuSeconds {
  const processes = world.processes();
  const of = (role: Role): number => processes[role].reduce((sum, { pid }) => sum + useOf(pid).cpuSeconds, 0);
  return {
    ...(Object.fromEntries(roles.map((role) => [role, of(role)])) as Record<Role, number>),
    load: useOf(process.pid).cpuSeconds,
  };
}

export const cpuBetween = (before: CpuSeconds, after: CpuSeconds): CpuSeconds =>
  Object.fromEntries([...roles, 'load' as const].map((role) => [role, after[role] - before[role]])) as Record<
    Role | 'load',
    number
  >;

export const residentBytes = (world: FleetWorld, role: Role): number =>
  world.processes()[role].reduce((sum, { pid }) => sum + useOf(pid).memBytes, 0);

export interface Stored {
  readonly stateBytes: number;
  readonly eventBytes: number;
  readonly diskBytes: number;
}

/** Bytes in JetStream's streams, and the size of its folder on disk. */
export const storedNow = (nats: Nats): Promise<Stored> =>
  asControlPlane(nats, async (nc) => {
    const jsm = await jetstreamManager(nc);
    let [stateBytes, eventBytes] = [0, 0];
    for await (const { config, state } of jsm.streams.list()) {
      if (config.name === streams.events.name) eventBytes += state.bytes;
      else stateBytes += state.bytes;
    }
    return { stateBytes, eventBytes, diskBytes: folderBytes(join(nats.logFile, '..', 'jetstream')) };
  });

/** The server makes and removes files meanwhile. */
function folderBytes(folder: string): number {
  const find = spawnSync('find', [folder, '-type', 'f', '-printf', '%b\\n'], {
    encoding: 'utf8',
    maxBuffer: findBytes,
  });
  // Blocks, not the length: JetStream allocates files long before they are full.
  return find.stdout.split('\n').reduce((sum, blocks) => sum + Number(blocks) * 512, 0);
}

export interface Memory {
  readonly heapBytes: number;
  readonly residentBytes: number;
}

/** Memory of all actors processes after a garbage collection (settle-preload.ts). */
export async function settledMemory(world: FleetWorld): Promise<Memory> {
  const asked = Date.now();
  const servers = world.processes().actors;
  for (const { pid } of servers) process.kill(pid, 'SIGUSR2');
  const end = asked + settleMs;
  const heaps = await Promise.all(
    world.memoryFiles.map(async (file) => {
      while ((statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) < asked) {
        if (Date.now() > end) throw new Error('an actors process did not write its heap size');
        await sleep(pollMs);
      }
      return Number(readFileSync(file, 'utf8'));
    }),
  );
  return { heapBytes: heaps.reduce((sum, heap) => sum + heap, 0), residentBytes: residentBytes(world, 'actors') };
}

export interface Lives {
  /** Milliseconds from a container's event `created` to its first `running`. */
  readonly tookMs: Float64Array;
  readonly lastRunningAtMs: number;
}

/**
 * Reads all stored events, once those of `count` containers are stored.
 * @param sinceMs those created before do not count
 */
export async function livesOf(nats: Nats, count: number, sinceMs: number): Promise<Lives> {
  const end = performance.now() + settleMs;
  for (;;) {
    const lives = await readLives(nats, sinceMs);
    if (lives.tookMs.length >= count) return lives;
    if (performance.now() > end) throw new Error(`${lives.tookMs.length} of ${count} containers have their events`);
    await sleep(rereadMs);
  }
}

const readLives = (nats: Nats, sinceMs: number): Promise<Lives> =>
  asControlPlane(nats, async (nc) => {
    const createdAt = new Map<string, number>();
    const runningAt = new Map<string, number>();
    const all = readStream(nc, {
      stream: streams.events.name,
      filter: 'event.>',
      from: { seq: 1 },
      batchMessages: 1_000,
      batchBytes: 1024 * 1024,
      timeoutMs: askMs,
    });
    for await (const { data } of all) {
      for (const { type, status, ts, container_id: id } of decodeEvents(data)) {
        const atMs = Date.parse(ts);
        if (type === 'created' && atMs >= sinceMs) createdAt.set(id, atMs);
        else if (type === 'status' && status === 'running' && createdAt.has(id) && !runningAt.has(id))
          runningAt.set(id, atMs);
      }
    }
    const took = [...runningAt].map(([id, atMs]) => atMs - (createdAt.get(id) ?? Number.NaN));
    let lastRunningAtMs = 0;
    for (const atMs of runningAt.values()) lastRunningAtMs = Math.max(lastRunningAtMs, atMs);
    return { tookMs: Float64Array.from(took), lastRunningAtMs };
  });
