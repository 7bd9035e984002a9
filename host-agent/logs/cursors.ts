/**
 * The cursors of all containers: a file, and a log of what changed since. Written in batches: a
 * line that is sent twice has the same number.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { isContainerId, type ContainerId } from '../../schemas/ids.ts';
import { fileMarks, lineMarks, readContinuedFile } from '../disk/continued-file.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { Cursor } from './resume.ts';

/** Delay with which the cursors are written after a change. */
const logCursorFlushMs = 500;

/**
 * Copies of a container whose places in their logs are kept. An update has two, and a second one
 * before its end has three; an agent removes all others before it makes one more.
 */
const logCursorCopies = 16;

const Count = Type.Integer({ minimum: 0 });
const StreamPlace = Type.Object({
  ts: Type.String(),
  nth: Count,
  isOpen: Type.Boolean(),
});

const CopyStored = Type.Object({
  dockerId: Type.String(),
  place: Type.Union([
    Type.Object({ ts: Type.String(), stream: Type.Enum(['stdout', 'stderr']), nth: Count }),
    Type.Null(),
  ]),
  seq: Count,
  /** Absent if the line came through the engine. */
  at: Type.Optional(
    Type.Object({ file: Type.String(), offset: Count, ts: Type.String(), stdout: StreamPlace, stderr: StreamPlace }),
  ),
});
const CursorStored = Type.Object({
  ...CopyStored.properties,
  /** Cursors of other copies; absent if there are none. */
  others: Type.Optional(Type.Array(CopyStored)),
});
/** The copy that was read last, and the others. */
type Stored = Cursor & { readonly others?: readonly Cursor[] };

const decodeFile = decoder(Type.Object({ ...fileMarks, cursors: Type.Record(Type.String(), CursorStored) }));
const decodeLine = decoder(
  Type.Object({
    ...lineMarks,
    /** `null` if the cursor is forgotten. */
    cursors: Type.Record(Type.String(), Type.Union([CursorStored, Type.Null()])),
  }),
);

export interface Cursors {
  /**
   * The place to resume at in this copy of the container: its beginning if nothing of it was read.
   * The number is the last one of all copies.
   */
  of(id: ContainerId, dockerId: string): Cursor;
  set(id: ContainerId, cursor: Cursor): void;
  /**
   * Forgets the places in other copies than these. The last number stays.
   * @param dockerIds all of the engine's copies of the container
   */
  keep(id: ContainerId, dockerIds: readonly string[]): void;
  forget(id: ContainerId): void;
  /** Resolves when the cursors are on disk, or cannot be written now. */
  sync(): Promise<void>;
  flush(): Promise<void>;
}

const copiesOf = ({ others = [], ...last }: Stored): Cursor[] => [last, ...others];

function storedOf([last, ...others]: readonly Cursor[] = []): Stored | null {
  if (last === undefined) return null;
  return others.length === 0 ? last : { ...last, others };
}

export async function loadCursors(stateDir: string, disk: StateDisk, log: Log): Promise<Cursors> {
  const stored = await readContinuedFile({
    stateDir,
    name: 'log-cursors',
    decodeFile,
    decodeLine,
    intervalMs: logCursorFlushMs,
    disk,
    log,
  });
  /** The cursors of all copies of a container, the one that was read last first. */
  const cursors = new Map<ContainerId, readonly Cursor[]>();
  for (const read of [stored.file, ...stored.lines]) {
    for (const [id, cursor] of Object.entries(read?.cursors ?? {})) {
      if (!isContainerId(id)) continue;
      if (cursor === null) cursors.delete(id);
      else cursors.set(id, copiesOf(cursor));
    }
  }

  /** The containers whose change is not on disk yet. */
  const changed = new Set<ContainerId>();
  const file = stored.follow({
    whole: () => ({ cursors: Object.fromEntries([...cursors].map(([id, copies]) => [id, storedOf(copies)])) }),
    changes: () => {
      if (changed.size === 0) return undefined;
      const news = Object.fromEntries([...changed].map((id) => [id, storedOf(cursors.get(id))]));
      changed.clear();
      return { cursors: news };
    },
  });
  const touch = (id: ContainerId): void => {
    changed.add(id);
    file.touch();
  };

  return {
    of: (id, dockerId) => {
      const copies = cursors.get(id) ?? [];
      const own = copies.find((copy) => copy.dockerId === dockerId) ?? { dockerId, place: null };
      return { ...own, seq: Math.max(0, ...copies.map(({ seq }) => seq)) };
    },
    set: (id, cursor) => {
      const others = (cursors.get(id) ?? []).filter(({ dockerId }) => dockerId !== cursor.dockerId);
      cursors.set(id, [cursor, ...others].slice(0, logCursorCopies));
      touch(id);
    },
    keep: (id, dockerIds) => {
      const [last, ...others] = cursors.get(id) ?? [];
      const kept = others.filter(({ dockerId }) => dockerIds.includes(dockerId));
      if (last === undefined || kept.length === others.length) return;
      cursors.set(id, [last, ...kept]);
      touch(id);
    },
    forget: (id) => {
      if (cursors.delete(id)) touch(id);
    },
    sync: () => file.sync(),
    flush: () => file.flush(),
  };
}
