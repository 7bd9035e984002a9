/**
 * The facts about volumes that the engine does not keep, on disk: the volumes of containers that
 * agents of before 0.2.0 made, which have no labels, and the time that volumes have stayed behind.
 */
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { ContainerId, TenantId } from '../../schemas/ids.ts';
import { minutes } from '../../schemas/limits/units.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';

/** Delay with which the time that they were kept is written after a change. */
const volumesFlushMs = 10 * minutes;

const Adopted = Type.Object({
  id: ContainerId,
  tenant: TenantId,
  /**
   * If a path is there twice, the last entry counts; the other volumes still go with the container.
   * The path is empty if no process of the container sees the volume.
   */
  at: Type.Array(Type.Object({ path: Type.String(), name: Type.String() })),
});
const Left = Type.Object({ id: ContainerId, keptMs: Type.Number({ minimum: 0 }) });

const decodeRecord = decoder(Type.Object({ v: Type.Literal(1), adopted: Type.Array(Adopted), left: Type.Array(Left) }));

export interface VolumeRecord {
  /** Volumes without labels, by container. */
  readonly adopted: Map<ContainerId, Static<typeof Adopted>>;
  /**
   * Milliseconds for which volumes of containers that have left this host were kept, as this agent
   * counts.
   */
  readonly left: Map<ContainerId, number>;
  /** The record has changed. Resolves when it is on disk, or when the disk refused it. */
  sync(): Promise<void>;
  /** A change that can wait: it is written with later changes. */
  touch(): void;
  flush(): Promise<void>;
}

export async function loadVolumeRecord(stateDir: string, disk: StateDisk, log: Log): Promise<VolumeRecord> {
  const path = join(stateDir, 'volumes.json');
  const known = await readDecoded(path, decodeRecord, log);
  const adopted = new Map((known?.adopted ?? []).map((each) => [each.id, each]));
  const left = new Map((known?.left ?? []).map(({ id, keptMs }) => [id, keptMs]));
  const content = (): string =>
    JSON.stringify({
      v: 1,
      adopted: [...adopted.values()],
      left: Array.from(left, ([id, keptMs]) => ({ id, keptMs })),
    });
  const file = createLazyFile(path, content, volumesFlushMs, disk);
  return {
    adopted,
    left,
    sync: () => {
      file.touch();
      return file.flush();
    },
    touch: file.touch,
    flush: file.flush,
  };
}
