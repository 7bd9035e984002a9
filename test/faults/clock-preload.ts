/**
 * Loaded into a program before its own code (`--import`): shifts its wall clock by the milliseconds
 * in a file, and steps it when the file changes. Its monotonic clock does not change, as on a
 * machine whose time is set.
 */
import { readFileSync } from 'node:fs';

const file = process.env['FAULTS_CLOCK_FILE'];
const pollMs = 50;

if (file !== undefined) {
  const realNow = Date.now.bind(Date);
  let offsetMs = 0;
  const look = (): void => {
    try {
      offsetMs = Number(readFileSync(file, 'utf8')) || 0;
    } catch {
      // It is being written: the next look reads it.
    }
  };
  look();
  setInterval(look, pollMs).unref();
  const RealDate = Date;
  RealDate.now = () => realNow() + offsetMs;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args: unknown[], newTarget) =>
      Reflect.construct(target, args.length === 0 ? [RealDate.now()] : args, newTarget) as Date,
    apply: () => new Date().toString(),
  });
}
