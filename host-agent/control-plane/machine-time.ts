/**
 * Time of the machine, for lengths of time that outlast the process: it never steps, and it goes on
 * while the machine sleeps (CLOCK_BOOTTIME on Linux). It starts again with each boot, so a time
 * means nothing without its boot.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock } from '../../lib/clock.ts';

export interface MachineTime {
  /** Names this boot of the machine; null where that cannot be known. */
  readonly boot: string | null;
  /** Milliseconds; comparable within one boot. */
  nowMs(): number;
}

export function systemMachineTime(clock: Clock): MachineTime {
  const boot = bootId();
  // Without the boot's id a process compares with its own past alone.
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
