/**
 * Loaded into a program before its own code (`--import`): operations on files end late and in any
 * order, the event loop stands still now and then, and garbage is collected often. Each can happen
 * on a slow machine, so a test that fails with it would fail on one.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { collectNow } from './garbage.ts';

/** The longest delay before an operation on a file, and again before its result. */
const fileMs = 12;
const stallMs = 25;
const stallEveryMs = 60;
const collectEveryMs = 1000;

// Tests replace both.
const { random } = Math;
const after = globalThis.setTimeout;

/**
 * Total delay of files in each second, so that a thousand operations in a row are not a thousand
 * times unlucky.
 */
const lateMs = 400;
let second = 0;
let leftMs = lateMs;

const delay = async (): Promise<void> => {
  const now = Math.floor(performance.now() / 1000);
  if (now !== second) [second, leftMs] = [now, lateMs];
  if (leftMs <= 0 || random() >= 0.5) return;
  const ms = random() * fileMs;
  leftMs -= ms;
  await new Promise((resolve) => after(resolve, ms));
};

type Operation = (...args: unknown[]) => Promise<unknown>;

/** Delays functions and methods; `this` stays the same. */
function delayAll(of: object, names: readonly string[]): void {
  const operations = of as Record<string, unknown>;
  for (const name of names) {
    const operation = operations[name];
    if (typeof operation !== 'function') throw new Error(`this version of Node has no ${name} for files`);
    operations[name] = async function (this: unknown, ...args: unknown[]) {
      await delay();
      const result: unknown = await Reflect.apply(operation as Operation, this, args);
      await delay();
      return result;
    };
  }
}

const ofHandles = ['appendFile', 'chmod', 'chown', 'datasync', 'read', 'readFile', 'stat', 'sync', 'truncate', 'write'];
/** Functions that return no promise, or read as they go. */
const asTheyAre = ['constants', 'glob', 'opendir', 'watch'];

const handle = await fs.promises.open('/dev/null');
delayAll(Object.getPrototypeOf(handle) as object, ofHandles);
await handle.close();
delayAll(
  fs.promises,
  Object.keys(fs.promises).filter((name) => !asTheyAre.includes(name)),
);
syncBuiltinESMExports();

/** An action that takes long comes more rarely, so that the program gets on. */
function repeat(everyMs: number, action: () => void): void {
  const next = (leastMs: number): void =>
    void after(
      () => {
        const startMs = performance.now();
        action();
        next(2 * (performance.now() - startMs));
      },
      Math.max(leastMs, random() * everyMs),
    ).unref();
  next(0);
}

const never = new Int32Array(new SharedArrayBuffer(4));
repeat(stallEveryMs, () => Atomics.wait(never, 0, 0, random() * stallMs));
repeat(collectEveryMs, collectNow);
