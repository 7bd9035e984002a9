/**
 * Whether an operator has removed this host by force. Kept on disk: an agent that restarts must not
 * start the containers that it had to stop.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';

const decodeFence = decoder(Type.Object({ v: Type.Literal(1), fenced: Type.Boolean() }));

export interface Fence {
  isUp(): boolean;
  /** The control plane says that this host was removed. @returns whether that is news */
  raise(): boolean;
  /** The control plane accepts this host again: it gave a session. */
  greeted(): void;
  /** Every owner has answered. @returns whether that lifts the fence */
  synced(): boolean;
  flush(): Promise<void>;
}

export async function loadFence(stateDir: string, disk: StateDisk, log: Log): Promise<Fence> {
  const path = join(stateDir, 'fence.json');
  let isUp = (await readDecoded(path, decodeFence, log))?.fenced ?? false;
  let isGreeted = false;
  const file = createLazyFile(path, () => JSON.stringify({ v: 1, fenced: isUp }), 0, disk);
  const set = (next: boolean): void => {
    isUp = next;
    file.touch();
  };
  return {
    isUp: () => isUp,
    raise: () => {
      isGreeted = false;
      if (isUp) return false;
      set(true);
      return true;
    },
    greeted: () => {
      isGreeted = true;
    },
    // The containers on disk may have been placed elsewhere meanwhile: only a fresh set may start.
    synced: () => {
      if (!isUp || !isGreeted) return false;
      set(false);
      return true;
    },
    flush: () => file.flush(),
  };
}
