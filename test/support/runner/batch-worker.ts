/**
 * Runs test files one after another in this process. It reads their paths from standard input and
 * writes tap's output, with a line of counts after each file. The argument is a unique name, so
 * that tap gives each worker its own folder for fixtures.
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { inspect } from 'node:util';
import t from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { beginWorker, endWorker } from './lifetime.ts';
import { markOfFile, none, oneFailed, type Totals } from './tap-stream.ts';

function failFile(why: string): Totals {
  process.stdout.write(`    ${why}\n`);
  return oneFailed;
}

/** Teardowns at the top level of a file. tap would run them after the last file of the worker. */
const teardowns: (() => unknown)[] = [];
t.teardown = (work) => void teardowns.push(work);

async function tearDown(): Promise<void> {
  for (let work = teardowns.pop(); work !== undefined; work = teardowns.pop()) await work();
}

async function runFile(path: string): Promise<Totals> {
  const before = { ...t.counts };
  // A file may have asked for tests side by side; those of this one may rest on their order.
  t.jobs = 1;
  try {
    await import(join(repositoryRoot, path));
    while (!t.idle) await once(t, 'idle');
    await tearDown();
  } catch (error) {
    return failFile(inspect(error));
  }
  // tap counts a failure only when the next line comes, because details may follow it.
  t.parser.emitResult();
  const { total, pass, fail, skip, todo } = t.counts;
  if (total === before.total) return failFile(`${path} has no test`);
  return { passed: pass - before.pass, failed: fail - before.fail, skipped: skip + todo - before.skip - before.todo };
}

// Each logger of each file adds a listener.
process.setMaxListeners(0);
// The parent has a deadline for each file. One that a file sets would end the files after it.
t.setTimeout(0);
t.setTimeout = () => {};
// With teardowns registered, tap would end an idle root; this one waits for the next file.
t.removeAllListeners('idle');
beginWorker();
// Tells the parent that this worker is ready.
process.stdout.write(markOfFile(none));
for await (const path of createInterface({ input: process.stdin })) {
  process.stdout.write(markOfFile(await runFile(path)));
}
await endWorker();
t.end();
