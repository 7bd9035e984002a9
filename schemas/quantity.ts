/** Amounts as tenants write them, and as the system counts them. */
import { limits } from './limits.ts';

export const cpuLimitPattern = '^\\d{1,3}\\.\\d{1,3}$';
export const memLimitPattern = '^[1-9]\\d*[bkmgBKMG]?$';

const cpuLimit = new RegExp(cpuLimitPattern);
const memLimit = new RegExp(memLimitPattern);

/** `"0.5"` → 500 thousandths of a vCPU; undefined if the text is not such a number, or is zero. */
export function cpuMillis(text: string): number | undefined {
  if (!cpuLimit.test(text)) return undefined;
  const millis = Math.round(Number(text) * 1000);
  return millis > 0 ? millis : undefined;
}

const memUnits: Readonly<Record<string, number>> = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/**
 * `"64m"` → 67108864 bytes; a bare number is bytes, units are powers of 1024 (Docker's `--memory`).
 * Undefined if the text is not a size, or above 16 TiB.
 */
export function sizeBytes(text: string): number | undefined {
  if (!memLimit.test(text)) return undefined;
  const unit = memUnits[text.slice(-1).toLowerCase()];
  const bytes = unit === undefined ? Number(text) : Number(text.slice(0, -1)) * unit;
  return bytes <= limits.memBytesMax ? bytes : undefined;
}

/** The same for a limit of memory. Undefined also below 6 MiB, Docker's own minimum. */
export function memBytes(text: string): number | undefined {
  const bytes = sizeBytes(text);
  return bytes !== undefined && bytes >= limits.memBytesMin ? bytes : undefined;
}

/** As tokens, NATS claims and revocations count time. */
export const wholeSeconds = (ms: number): number => Math.floor(ms / 1000);
