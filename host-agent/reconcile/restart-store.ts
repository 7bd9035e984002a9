/**
 * What the agent remembers, on disk: so that a restart of it neither forgives a crash loop nor
 * forgets a word given.
 */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { Reason } from '../../schemas/api/container.ts';
import { ContainerId, isContainerId } from '../../schemas/ids.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import { blank, lastingOf, type Memory } from './restart-state.ts';
import { noOrphans, type OrphanMemory } from '../workload/orphans.ts';
import type { StateDisk } from '../disk/state-disk.ts';

const Count = Type.Integer({ minimum: 0 });
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const decodeMemories = decoder(
  Type.Object({
    v: Type.Literal(1),
    containers: Type.Record(
      Type.String(),
      Type.Object({
        generation: Type.Integer(),
        want: Type.Enum(['running', 'stopped', 'removed', 'nothing', 'untouched']),
        attempt: Type.Union([
          Type.Object({ phase: Type.Literal('clear') }),
          Type.Object({
            phase: Type.Literal('waiting'),
            /** As the wall clock showed it. */
            untilMs: Type.Number(),
            /** What was left when this was written; absent from agents of the last release. */
            leftMs: Type.Optional(Type.Number({ minimum: 0 })),
          }),
          Type.Object({ phase: Type.Literal('failed') }),
        ]),
        why: nullable(Type.Object({ reason: Reason, message: Type.String(), exitCode: nullable(Type.Integer()) })),
        failures: Count,
        restarts: Count,
        countedRun: nullable(Type.String()),
        pullDue: Type.Boolean(),
      }),
    ),
    orphans: Type.Object({
      approved: Type.Array(ContainerId),
      word: nullable(Count),
    }),
  }),
);

const flushMs = 500;

/**
 * Over a restart a wait goes on with what is left of it, by the wall clock, within what it can have
 * been.
 */
export interface WaitTime {
  readonly wallMs: () => number;
  /** Of waits while the agent runs (memory.ts). */
  readonly steadyMs: () => number;
  readonly maxWaitMs: number;
}

type Stored = ReturnType<typeof decodeMemories>['containers'][string];

export function toStored(memory: Memory, { wallMs, steadyMs }: WaitTime): Stored {
  const lasting = lastingOf(memory);
  if (lasting.attempt.phase !== 'waiting') return { ...lasting, attempt: lasting.attempt };
  const leftMs = Math.max(0, lasting.attempt.untilMs - steadyMs());
  return { ...lasting, attempt: { phase: 'waiting', untilMs: wallMs() + leftMs, leftMs } };
}

export function fromStored(stored: Stored, { wallMs, steadyMs, maxWaitMs }: WaitTime): Memory {
  const { attempt } = stored;
  if (attempt.phase !== 'waiting') return { ...blank, ...stored, attempt };
  const leftMs = Math.min(attempt.untilMs - wallMs(), attempt.leftMs ?? maxWaitMs, maxWaitMs);
  return { ...blank, ...stored, attempt: { phase: 'waiting', untilMs: steadyMs() + Math.max(0, leftMs) } };
}

export interface MemoryStore {
  of(id: ContainerId): Memory;
  set(id: ContainerId, memory: Memory): void;
  forget(id: ContainerId): void;
  orphans(): OrphanMemory;
  setOrphans(memory: OrphanMemory): void;
  ids(): Iterable<ContainerId>;
  flush(): Promise<void>;
}

export async function loadMemories(stateDir: string, time: WaitTime, disk: StateDisk, log: Log): Promise<MemoryStore> {
  const path = join(stateDir, 'memory.json');
  const known = await readDecoded(path, decodeMemories, log);
  const memories = new Map<ContainerId, Memory>();
  for (const [id, stored] of Object.entries(known?.containers ?? {})) {
    if (isContainerId(id)) memories.set(id, fromStored(stored, time));
  }
  let orphans: OrphanMemory =
    known === undefined ? noOrphans : { ...known.orphans, approved: new Set(known.orphans.approved) };

  const content = () =>
    JSON.stringify({
      v: 1,
      containers: Object.fromEntries([...memories].map(([id, memory]) => [id, toStored(memory, time)])),
      orphans: { ...orphans, approved: [...orphans.approved] },
    });
  const file = createLazyFile(path, content, flushMs, disk);

  return {
    of: (id) => memories.get(id) ?? blank,
    set: (id, memory) => {
      const before = memories.get(id);
      if (before === memory) return;
      memories.set(id, memory);
      if (before === undefined || !isDeepStrictEqual(lastingOf(before), lastingOf(memory))) file.touch();
    },
    forget: (id) => {
      if (memories.delete(id)) file.touch();
    },
    orphans: () => orphans,
    setOrphans: (memory) => {
      orphans = memory;
      file.touch();
    },
    ids: () => memories.keys(),
    flush: () => file.flush(),
  };
}
