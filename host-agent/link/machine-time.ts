/**
 * Machine time, for intervals that outlast the process: it never steps, and it advances while the
 * machine sleeps (CLOCK_BOOTTIME on Linux). It restarts with each boot, so a time means nothing
 * without its boot.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock } from '../../lib/time/clock.ts';

export interface MachineTime {
  /** Names this boot of the machine; `null` if the system does not name it. */
  readonly boot: string | null;
  /** Milliseconds; comparable within one boot. */
  nowMs(): number;
}

export function systemMachineTime(clock: Clock): MachineTime {
  const boot = bootId();
  // Without a boot id, times are comparable within this process only.
  return boot === null ? { boot, nowMs: () => clock.monotonicMs() } : { boot, nowMs: () => uptime() * 1000 };
}

function bootId(): string | null {
  if (process.platform !== 'linux') return null;
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim() || null;
  } catch {
    return null;
  }
}
