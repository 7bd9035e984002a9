/**
 * The cursors of all containers: a file, and a log of what changed since. Written in batches: a
 * line that is sent twice has the same number.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { isContainerId, type ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { fileMarks, lineMarks, readContinuedFile } from '../disk/continued-file.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { Cursor } from './resume.ts';

const Count = Type.Integer({ minimum: 0 });
const StreamPlace = Type.Object({
  ts: Type.String(),
  nth: Count,
  isOpen: Type.Boolean(),
});

const CursorStored = Type.Object({
  dockerId: Type.String(),
  place: Type.Union([
    Type.Object({ ts: Type.String(), stream: Type.Enum(['stdout', 'stderr']), nth: Count }),
    Type.Null(),
  ]),
  seq: Count,
  /** Absent: the line came through the engine. */
  at: Type.Optional(
    Type.Object({ file: Type.String(), offset: Count, ts: Type.String(), stdout: StreamPlace, stderr: StreamPlace }),
  ),
});

const decodeFile = decoder(Type.Object({ ...fileMarks, cursors: Type.Record(Type.String(), CursorStored) }));
const decodeLine = decoder(
  Type.Object({
    ...lineMarks,
    /** Null: forgotten. */
    cursors: Type.Record(Type.String(), Type.Union([CursorStored, Type.Null()])),
  }),
);

export interface Cursors {
  /**
   * Where to resume in this container of the engine: at its beginning, if the cursor belongs to
   * another one.
   */
  of(id: ContainerId, dockerId: string): Cursor;
  set(id: ContainerId, cursor: Cursor): void;
  forget(id: ContainerId): void;
  flush(): Promise<void>;
}

export async function loadCursors(stateDir: string, disk: StateDisk, log: Log): Promise<Cursors> {
  const stored = await readContinuedFile({
    stateDir,
    name: 'log-cursors',
    decodeFile,
    decodeLine,
    intervalMs: limits.logCursorFlushMs,
    disk,
    log,
  });
  const cursors = new Map<ContainerId, Cursor>();
  for (const read of [stored.file, ...stored.lines]) {
    for (const [id, cursor] of Object.entries(read?.cursors ?? {})) {
      if (!isContainerId(id)) continue;
      if (cursor === null) cursors.delete(id);
      else cursors.set(id, cursor);
    }
  }

  /** What the disk does not know yet. */
  const changed = new Set<ContainerId>();
  const file = stored.follow({
    whole: () => ({ cursors: Object.fromEntries(cursors) }),
    changes: () => {
      if (changed.size === 0) return undefined;
      const news = Object.fromEntries([...changed].map((id) => [id, cursors.get(id) ?? null]));
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
      const cursor = cursors.get(id);
      if (cursor?.dockerId === dockerId) return cursor;
      return { dockerId, place: null, seq: cursor?.seq ?? 0 };
    },
    set: (id, cursor) => {
      cursors.set(id, cursor);
      touch(id);
    },
    forget: (id) => {
      if (cursors.delete(id)) touch(id);
    },
    flush: () => file.flush(),
  };
}
