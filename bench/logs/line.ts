/** A log line: its number, the time it was written, and padding; 100 bytes with its newline. */

export const lineBytes = 100;
const numberDigits = 9;
const timeDigits = 17;
const padding = 'x'.repeat(lineBytes - numberDigits - timeDigits - 3);

/** Milliseconds since 1970 with fractions, comparable between processes of one machine. */
export const wallMs = (): number => performance.timeOrigin + performance.now();

export const makeLine = (number: number, writtenMs: number): string =>
  `${String(number).padStart(numberDigits, '0')} ${writtenMs.toFixed(3).padStart(timeDigits, '0')} ${padding}`;

export const readLine = (line: string): { readonly number: number; readonly writtenMs: number } => ({
  number: Number(line.slice(0, numberDigits)),
  writtenMs: Number(line.slice(numberDigits + 1, numberDigits + 1 + timeDigits)),
});

const tickMs = 5;

/**
 * Emits `lines` lines at a steady rate. About two hundred times a second it calls `emit` with the
 * range of numbers that are due, [from, to). `emit` returns the number up to which it wrote; the
 * rest is due again in the next call.
 */
export function atPace(
  linesPerSecond: number,
  lines: number,
  emit: (from: number, to: number) => number,
): Promise<void> {
  const startMs = performance.now();
  let done = 0;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(lines, Math.floor(((performance.now() - startMs) / 1000) * linesPerSecond));
      if (due > done) done = emit(done, due);
      if (done < lines) return;
      clearInterval(timer);
      resolve();
    }, tickMs);
  });
}
