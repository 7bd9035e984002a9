/**
 * Restart states on disk, so that a restart of the agent neither forgives a crash loop nor forgets
 * an operator's approval.
 */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import Type from 'typebox';
import { decoder } from '../../../lib/decode.ts';
import type { Log } from '../../../lib/log.ts';
import { Reason } from '../../../schemas/api/container.ts';
import { ContainerId, isContainerId } from '../../../schemas/ids.ts';
import { createLazyFile, readDecoded } from '../../disk/files.ts';
import { blank, lastingOf, type RestartState } from './restart-state.ts';
import { noOrphans, type OrphanState } from '../../workload/orphans.ts';
import type { StateDisk } from '../../disk/state-disk.ts';
import { limits } from '../../../schemas/limits.ts';

const Count = Type.Integer({ minimum: 0 });
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const decodeRestartStates = decoder(
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
            /** By the wall clock. */
            untilMs: Type.Number(),
            /** The rest of the wait when this was written; agents from before 0.1.0 wrote none. */
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

/**
 * A wait survives a restart with what the wall clock leaves of it, bounded by its longest possible
 * value.
 */
export interface WaitTime {
  readonly wallMs: () => number;
  /** For waits while the agent runs (restart-state.ts). */
  readonly steadyMs: () => number;
  readonly maxWaitMs: number;
}

type Stored = ReturnType<typeof decodeRestartStates>['containers'][string];

export function toStored(restart: RestartState, { wallMs, steadyMs }: WaitTime): Stored {
  const lasting = lastingOf(restart);
  if (lasting.attempt.phase !== 'waiting') return { ...lasting, attempt: lasting.attempt };
  const leftMs = Math.max(0, lasting.attempt.untilMs - steadyMs());
  return { ...lasting, attempt: { phase: 'waiting', untilMs: wallMs() + leftMs, leftMs } };
}

export function fromStored(stored: Stored, { wallMs, steadyMs, maxWaitMs }: WaitTime): RestartState {
  const { attempt } = stored;
  if (attempt.phase !== 'waiting') return { ...blank, ...stored, attempt };
  const leftMs = Math.min(attempt.untilMs - wallMs(), attempt.leftMs ?? maxWaitMs, maxWaitMs);
  return { ...blank, ...stored, attempt: { phase: 'waiting', untilMs: steadyMs() + Math.max(0, leftMs) } };
}

export interface RestartStore {
  of(id: ContainerId): RestartState;
  set(id: ContainerId, restart: RestartState): void;
  forget(id: ContainerId): void;
  orphans(): OrphanState;
  setOrphans(state: OrphanState): void;
  ids(): Iterable<ContainerId>;
  flush(): Promise<void>;
}

export async function loadRestartStore(
  stateDir: string,
  time: WaitTime,
  disk: StateDisk,
  log: Log,
): Promise<RestartStore> {
  const path = join(stateDir, 'memory.json');
  const known = await readDecoded(path, decodeRestartStates, log);
  const states = new Map<ContainerId, RestartState>();
  for (const [id, stored] of Object.entries(known?.containers ?? {})) {
    if (isContainerId(id)) states.set(id, fromStored(stored, time));
  }
  let orphans: OrphanState =
    known === undefined ? noOrphans : { ...known.orphans, approved: new Set(known.orphans.approved) };

  const content = () =>
    JSON.stringify({
      v: 1,
      containers: Object.fromEntries([...states].map(([id, restart]) => [id, toStored(restart, time)])),
      orphans: { ...orphans, approved: [...orphans.approved] },
    });
  const file = createLazyFile(path, content, limits.restartStateFlushMs, disk);

  return {
    of: (id) => states.get(id) ?? blank,
    set: (id, restart) => {
      const before = states.get(id);
      if (before === restart) return;
      states.set(id, restart);
      if (before === undefined || !isDeepStrictEqual(lastingOf(before), lastingOf(restart))) file.touch();
    },
    forget: (id) => {
      if (states.delete(id)) file.touch();
    },
    orphans: () => orphans,
    setOrphans: (state) => {
      orphans = state;
      file.touch();
    },
    ids: () => states.keys(),
    flush: () => file.flush(),
  };
}
