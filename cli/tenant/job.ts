/** `run --job`: a container that runs once, with its log at this terminal. */
import { sleep, withAbort } from '../../lib/time/backoff.ts';
import { dataOf, doneOf, orNone } from '../client/api.ts';
import type { Settled } from '../client/wait.ts';
import type { Context } from '../context.ts';
import { Exit, Refused, wordsOf } from '../terminal/errors.ts';
import { followedLines, writeLine } from './past.ts';
import { untilGone } from './rest.ts';
import { lineOf, telling, untilSettled, type Waiting } from './progress.ts';

/** Last lines of a job that is kept: longest pause between two lines. */
const cliQuietMs = 2000;
/**
 * Last lines of a job that is gone, which are complete: pause between looks, and their deadline.
 */
const cliLinesLookMs = 100;
const cliLinesMs = 30_000;

interface Named {
  readonly id: string;
  readonly name: string;
}

interface Job extends Waiting {
  /** Leaves the container after its end. */
  readonly isKept: boolean;
}

/**
 * @throws Exit with the code of the job; Refused if it has none; InterruptedError, while it goes on
 */
export async function runJob(context: Context, container: Named, job: Job): Promise<void> {
  const { name } = container;
  const log = `"longshore logs -f ${name}" shows its log`;
  const goesOn = `${name} goes on: ${log}, and "longshore rm ${name}" removes it`;
  const end = await telling(context, goesOn, () =>
    withAbort([context.terminal.signal], (lines) => withLog(context, container, job, lines)),
  );
  if (end.outcome === 'done') return;
  if (end.exit_code !== null && end.exit_code !== 0) throw new Exit(end.exit_code);
  throw new Refused(`${name} is ${lineOf(end)}`);
}

async function withLog(context: Context, { id, name }: Named, job: Job, ended: AbortController): Promise<Settled> {
  const { api, terminal, tell } = context;
  let [heardMs, lastSeq, isOver] = [performance.now(), 0, false];
  const write = async (): Promise<void> => {
    for await (const entry of followedLines(context, id, ended.signal)) {
      writeLine(context, entry, { before: '', hasTime: false });
      [heardMs, lastSeq] = [performance.now(), entry.seq];
    }
  };
  // The job goes on even if its log can't be shown.
  const lines = write()
    .catch((error: unknown) => {
      if (!ended.signal.aborted) tell(wordsOf(error));
    })
    .finally(() => (isOver = true));
  const end = await untilSettled(context, { id, name }, job);
  if (job.isKept) {
    const endMs = performance.now();
    while (performance.now() - Math.max(heardMs, endMs) < cliQuietMs) await sleep(cliQuietMs / 4, terminal.signal);
  } else {
    await orNone(doneOf(api.DELETE('/api/v2/compute/{id}', { params: { path: { id } } })));
    await untilGone(context, { id, name }, job.seconds);
    // Its host has sent all lines before it removed the container.
    const query = { limit: 1 };
    const asked = dataOf(api.GET('/api/v2/compute/{id}/logs', { params: { path: { id }, query } }));
    const [newest] = await asked.catch(() => []);
    const endMs = performance.now() + cliLinesMs;
    while (newest !== undefined && lastSeq < newest.seq && !isOver && performance.now() < endMs)
      await Promise.race([lines, sleep(cliLinesLookMs, terminal.signal)]);
  }
  ended.abort();
  return end;
}
