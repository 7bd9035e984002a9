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
import { markOfFile, none, oneFailed, type Totals } from './tap-stream.ts';

function failFile(why: string): Totals {
  process.stdout.write(`    ${why}\n`);
  return oneFailed;
}

async function runFile(path: string): Promise<Totals> {
  const before = { ...t.counts };
  try {
    await import(join(repositoryRoot, path));
  } catch (error) {
    return failFile(inspect(error));
  }
  while (!t.idle) await once(t, 'idle');
  // tap counts a failure only when the next line comes, because details may follow it.
  t.parser.emitResult();
  const { total, pass, fail, skip, todo } = t.counts;
  if (total === before.total) return failFile(`${path} has no test`);
  return { passed: pass - before.pass, failed: fail - before.fail, skipped: skip + todo - before.skip - before.todo };
}

// Each logger of each file adds a listener.
process.setMaxListeners(0);
// The parent has a deadline for each file.
t.setTimeout(0);
// With teardowns registered, tap would end an idle root; this one waits for the next file.
t.removeAllListeners('idle');
// Tells the parent that this worker is ready.
process.stdout.write(markOfFile(none));
for await (const path of createInterface({ input: process.stdin })) {
  process.stdout.write(markOfFile(await runFile(path)));
}
t.end();
