/**
 * The life of a program: start, run until a signal, stop in the reverse order, each step with a
 * deadline.
 */
import { ConfigurationError } from './config.ts';
import { within } from './time/backoff.ts';
import type { Log } from './log.ts';

export interface Stoppable {
  readonly name: string;
  readonly deadlineMs: number;
  stop(): Promise<void>;
}

export interface Lifecycle {
  /** Stops run in the reverse order of starts. */
  onStop(part: Stoppable): void;
  /** Stops the program, with exit code 1: for faults that it cannot repair itself. */
  fail(event: string, error: unknown): void;
}

/**
 * Runs a program's `start`, then waits for SIGTERM or SIGINT. A second signal ends the program at
 * once. An unhandled error is a bug: the program logs it and ends, because its state is in doubt
 * (invariant A5 makes that safe).
 */
export async function runProgram(log: Log, start: (life: Lifecycle) => Promise<void>): Promise<void> {
  const parts: Stoppable[] = [];
  let stopping: Promise<void> | undefined;

  const stop = (exitCode: number): Promise<void> =>
    (stopping ??= (async () => {
      for (const part of parts.toReversed()) {
        try {
          await within(part.stop(), part.deadlineMs, `stopping ${part.name}`);
        } catch (error) {
          log.error('stop_failed', { part: part.name, error });
          exitCode = 1;
        }
      }
      log.info('stopped', { exitCode });
      process.exit(exitCode);
    })());

  const sayFaults = ({ faults }: ConfigurationError): void => {
    for (const fault of faults) log.error('configuration_invalid', { fault });
  };

  const life: Lifecycle = {
    onStop: (part) => parts.push(part),
    fail: (event, error) => {
      if (error instanceof ConfigurationError) sayFaults(error);
      else log.error(event, { error });
      void stop(1);
    },
  };

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping !== undefined) process.exit(1);
      log.info('stopping', { signal });
      void stop(0);
    });
  }
  process.on('uncaughtException', (error) => {
    log.error('uncaught_exception', { error });
    process.exit(1);
  });

  try {
    await start(life);
    log.info('started');
  } catch (error) {
    if (error instanceof ConfigurationError) sayFaults(error);
    else log.error('start_failed', { error });
    await stop(1);
  }
}
