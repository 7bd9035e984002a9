/**
 * The cursors of all containers, in one file. Written in batches: a line that is sent twice has the
 * same number.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { isContainerId, type ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { Cursor } from './resume.ts';

const StreamPlace = Type.Object({
  ts: Type.String(),
  nth: Type.Integer({ minimum: 0 }),
  isOpen: Type.Boolean(),
});

const decodeCursors = decoder(
  Type.Object({
    v: Type.Literal(1),
    cursors: Type.Record(
      Type.String(),
      Type.Object({
        dockerId: Type.String(),
        place: Type.Union([
          Type.Object({
            ts: Type.String(),
            stream: Type.Enum(['stdout', 'stderr']),
            nth: Type.Integer({ minimum: 0 }),
          }),
          Type.Null(),
        ]),
        seq: Type.Integer({ minimum: 0 }),
        // Agents before 0.2 do not write it.
        at: Type.Optional(
          Type.Object({
            file: Type.String(),
            offset: Type.Integer({ minimum: 0 }),
            ts: Type.String(),
            stdout: StreamPlace,
            stderr: StreamPlace,
          }),
        ),
      }),
    ),
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
  const path = join(stateDir, 'log-cursors.json');
  const known = await readDecoded(path, decodeCursors, log);
  const cursors = new Map<ContainerId, Cursor>();
  for (const [id, cursor] of Object.entries(known?.cursors ?? {})) if (isContainerId(id)) cursors.set(id, cursor);
  const content = () => JSON.stringify({ v: 1, cursors: Object.fromEntries(cursors) });
  const file = createLazyFile(path, content, limits.logCursorFlushMs, disk);

  return {
    of: (id, dockerId) => {
      const cursor = cursors.get(id);
      if (cursor?.dockerId === dockerId) return cursor;
      return { dockerId, place: null, seq: cursor?.seq ?? 0 };
    },
    set: (id, cursor) => {
      cursors.set(id, cursor);
      file.touch();
    },
    forget: (id) => {
      if (cursors.delete(id)) file.touch();
    },
    flush: () => file.flush(),
  };
}
