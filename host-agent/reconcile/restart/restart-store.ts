/**
 * Restart states on disk, so that a restart of the agent neither forgives a crash loop nor forgets
 * an operator's approval.
 */
import { isDeepStrictEqual } from 'node:util';
import Type, { type Static } from 'typebox';
import { decoder } from '../../../lib/decode.ts';
import type { Log } from '../../../lib/log.ts';
import { Reason, updatePhases } from '../../../schemas/api/container.ts';
import { ContainerId, isContainerId } from '../../../schemas/ids.ts';
import { fileMarks, lineMarks, readContinuedFile } from '../../disk/continued-file.ts';
import { blank, lastingOf, type RestartState } from './restart-state.ts';
import { noOrphans, type OrphanState } from '../../desired/orphans.ts';
import type { StateDisk } from '../../disk/state-disk.ts';

/** Delay with which restart states are written after a change. */
const restartStateFlushMs = 500;

const Count = Type.Integer({ minimum: 0 });
const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const Why = Type.Object({
  reason: Reason,
  message: Type.String(),
  exitCode: nullable(Type.Integer()),
  login: Type.Optional(Count),
});
const WhyStored = nullable(Why);

const RestartStateStored = Type.Object({
  generation: Type.Integer(),
  /** `untouched` stands for `ignored`, since the first version of this file. */
  want: Type.Enum(['running', 'stopped', 'removed', 'nothing', 'untouched']),
  attempt: Type.Union([
    Type.Object({ phase: Type.Literal('clear') }),
    Type.Object({
      phase: Type.Literal('waiting'),
      /** By the wall clock. */
      untilMs: Type.Number(),
      /** The rest of the wait when this was written. */
      leftMs: Type.Number({ minimum: 0 }),
    }),
    Type.Object({
      phase: Type.Literal('failed'),
      /** The container has ended (`Attempt`), and has not failed. */
      ended: Type.Optional(Type.Literal(true)),
    }),
  ]),
  why: WhyStored,
  failures: Count,
  restarts: Count,
  countedRun: nullable(Type.String()),
  pullDue: Type.Boolean(),
  ending: nullable(Type.Object({ run: Type.String(), why: Why })),
  // Absent in a state of before 0.2.0.
  start: Type.Optional(nullable(Count)),
  stopped: Type.Optional(Type.Array(Type.String())),
  hasBegun: Type.Optional(Type.Boolean()),
  update: nullable(
    Type.Object({
      since: Count,
      phase: Type.Enum([...updatePhases]),
      why: WhyStored,
      unmoved: Type.Optional(Type.Literal(true)),
    }),
  ),
});
type Stored = Static<typeof RestartStateStored>;
const OrphansStored = Type.Object({ approved: Type.Array(ContainerId), word: nullable(Count) });

const decodeFile = decoder(
  Type.Object({
    ...fileMarks,
    containers: Type.Record(Type.String(), RestartStateStored),
    orphans: OrphansStored,
  }),
);
const decodeLine = decoder(
  Type.Object({
    ...lineMarks,
    /** `null` if the container is forgotten. */
    containers: Type.Record(Type.String(), nullable(RestartStateStored)),
    orphans: Type.Optional(OrphansStored),
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

function storedWant(want: RestartState['want']): Stored['want'] {
  if (want === 'ignored') return 'untouched';
  // The last release reads no other value; this one observes the container afresh.
  return want === 'prepared' ? 'stopped' : want;
}

export function toStored(restart: RestartState, { wallMs, steadyMs }: WaitTime): Stored {
  const { want, ...rest } = lastingOf(restart);
  const lasting = { ...rest, stopped: [...rest.stopped], want: storedWant(want) };
  if (lasting.attempt.phase === 'ended') {
    return { ...lasting, attempt: { phase: 'failed', ended: true } };
  }
  if (lasting.attempt.phase !== 'waiting') return { ...lasting, attempt: lasting.attempt };
  const leftMs = Math.max(0, lasting.attempt.untilMs - steadyMs());
  return { ...lasting, attempt: { phase: 'waiting', untilMs: wallMs() + leftMs, leftMs } };
}

export function fromStored(stored: Stored, { wallMs, steadyMs, maxWaitMs }: WaitTime): RestartState {
  const { attempt } = stored;
  const want: RestartState['want'] = stored.want === 'untouched' ? 'ignored' : stored.want;
  const restart = { ...blank, ...stored, want };
  if (attempt.phase === 'failed' && attempt.ended === true) {
    const { why } = restart;
    // Before 0.2.0, `exited` was written for what has completed.
    const isCompleted = why?.reason === 'exited' && why.exitCode === 0;
    return { ...restart, attempt: { phase: 'ended' }, why: isCompleted ? { ...why, reason: 'completed' } : why };
  }
  if (attempt.phase !== 'waiting') return { ...restart, attempt };
  const leftMs = Math.min(attempt.untilMs - wallMs(), attempt.leftMs, maxWaitMs);
  return { ...restart, attempt: { phase: 'waiting', untilMs: steadyMs() + Math.max(0, leftMs) } };
}

export interface RestartStore {
  of(id: ContainerId): RestartState;
  set(id: ContainerId, restart: RestartState): void;
  /** @returns `true` if the state has changed */
  change(id: ContainerId, after: (before: RestartState) => RestartState): boolean;
  forget(id: ContainerId): void;
  orphans(): OrphanState;
  setOrphans(state: OrphanState): void;
  ids(): Iterable<ContainerId>;
  /** Resolves when what has changed is on disk, or when the disk refused it. */
  sync(): Promise<void>;
  /** As `sync`, for the end of the agent. */
  flush(): Promise<void>;
}

export async function loadRestartStore(
  stateDir: string,
  time: WaitTime,
  disk: StateDisk,
  log: Log,
): Promise<RestartStore> {
  const { file, lines, follow } = await readContinuedFile({
    stateDir,
    name: 'memory',
    decodeFile,
    decodeLine,
    intervalMs: restartStateFlushMs,
    disk,
    log,
  });
  const states = new Map<ContainerId, RestartState>();
  for (const read of [file, ...lines]) {
    for (const [id, stored] of Object.entries(read?.containers ?? {})) {
      if (!isContainerId(id)) continue;
      if (stored === null) states.delete(id);
      else states.set(id, fromStored(stored, time));
    }
  }
  const stored = lines.findLast((line) => line.orphans !== undefined)?.orphans ?? file?.orphans;
  let orphans: OrphanState = stored === undefined ? noOrphans : { ...stored, approved: new Set(stored.approved) };

  /** The containers whose change is not on disk yet. */
  const changed = new Set<ContainerId>();
  let haveOrphansChanged = false;
  const orphansNow = () => ({ ...orphans, approved: [...orphans.approved] });
  const changes = () => {
    if (changed.size === 0 && !haveOrphansChanged) return undefined;
    const containers = Object.fromEntries(
      [...changed].map((id) => {
        const restart = states.get(id);
        return [id, restart === undefined ? null : toStored(restart, time)];
      }),
    );
    const line = { containers, ...(haveOrphansChanged ? { orphans: orphansNow() } : {}) };
    changed.clear();
    haveOrphansChanged = false;
    return line;
  };
  const whole = () => ({
    containers: Object.fromEntries([...states].map(([id, restart]) => [id, toStored(restart, time)])),
    orphans: orphansNow(),
  });
  const writer = follow({ whole, changes });
  const touch = (id: ContainerId): void => {
    changed.add(id);
    writer.touch();
  };

  const of = (id: ContainerId): RestartState => states.get(id) ?? blank;
  const set = (id: ContainerId, restart: RestartState): void => {
    const before = states.get(id);
    if (before === restart) return;
    states.set(id, restart);
    if (before === undefined || !isDeepStrictEqual(lastingOf(before), lastingOf(restart))) touch(id);
  };

  return {
    of,
    set,
    change: (id, after) => {
      const before = of(id);
      const next = after(before);
      if (next === before) return false;
      set(id, next);
      return true;
    },
    forget: (id) => {
      if (states.delete(id)) touch(id);
    },
    orphans: () => orphans,
    setOrphans: (state) => {
      haveOrphansChanged ||= !isDeepStrictEqual(state, orphans);
      orphans = state;
      // Each judgement sets the orphans again.
      if (haveOrphansChanged) writer.touch();
    },
    ids: () => states.keys(),
    sync: () => writer.sync(),
    flush: () => writer.flush(),
  };
}
