/**
 * Runs a program as a service manager does: one that ends by itself starts again a moment later.
 * Faults kill, pause and restart it.
 */
import { startProgram, type Program } from '../../../dev/stack/programs.ts';
import type { Exit, Server } from '../../../dev/process/process.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { Scope } from '../../support/machine.ts';

/** A process that faults can harm and bring back with the same settings. */
export interface Controlled {
  server(): Server;
  kill9(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  /**
   * True if a load balancer sends it requests: not after its SIGTERM, when `/readyz` says so, and
   * not until it is ready again. Absent if it serves no clients.
   */
  isReady?(): boolean;
}

/** Between the end of a program and its next start. */
const restartPauseMs = 500;
/** A program that fails to start so often ends the run: its log says why. */
const startsMax = 3;

export async function supervise(scope: Scope, program: Program, ended: (exit: Exit) => void): Promise<Controlled> {
  let isReady = false;
  const launch = async (): Promise<Server> => {
    for (let restarts = 0; ; restarts++) {
      isReady = false;
      try {
        const started = await startProgram(program, process.env);
        isReady = true;
        return started;
      } catch (error) {
        if (restarts === startsMax) throw error;
        ended({ kind: 'code', code: 1 });
        await sleep(restartPauseMs);
      }
    }
  };
  let server = await launch();
  let isWanted = true;
  let restarting: Promise<void> = Promise.resolve();
  const watch = (): void => {
    const watched = server;
    void watched.exited.then((exit) => {
      if (!isWanted || server !== watched) return;
      ended(exit);
      restarting = sleep(restartPauseMs).then(async () => {
        await watched.stop();
        if (isWanted) server = await launch();
        watch();
      });
    });
  };
  watch();
  const end = async (how: () => Promise<unknown>): Promise<void> => {
    isWanted = false;
    await restarting;
    await how();
  };
  scope.teardown(() => end(() => server.stop()));
  return {
    server: () => server,
    kill9: () => end(() => server.kill9()),
    stop: () =>
      end(() => {
        isReady = false;
        return server.stop();
      }),
    start: async () => {
      // Clears what a killed one left in the ledger.
      await server.stop();
      server = await launch();
      isWanted = true;
      watch();
    },
    pause: () => server.pause(),
    resume: () => server.resume(),
    isReady: () => isReady,
  };
}
