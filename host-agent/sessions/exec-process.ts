/**
 * The process of an exec: its state comes from the engine, and it is ended on this machine, because
 * the engine has no call for that.
 */
import { sleep } from '../../lib/time/backoff.ts';
import type { ExecSignal } from '../../schemas/api/sessions/control.ts';
import type { ExecState } from '../docker/answers.ts';
import type { ExecCalls } from '../docker/calls/exec.ts';
import type { ProcessTree } from './process-tree.ts';

/** Number and intervals of questions to the engine about the process of an exec. */
const execLooks = 100;
const execLookMs = 50;

export interface ExecName {
  /** The engine's id of the exec. */
  readonly id: string;
  /** The engine's id of its container. */
  readonly dockerId: string;
}

export class ExecProcess {
  readonly #engine: Pick<ExecCalls, 'inspectExec'>;
  readonly #processes: ProcessTree | undefined;
  readonly #name: ExecName;

  /** @param processes `undefined` if the engine is on another machine */
  constructor(engine: Pick<ExecCalls, 'inspectExec'>, processes: ProcessTree | undefined, name: ExecName) {
    this.#engine = engine;
    this.#processes = processes;
    this.#name = name;
  }

  /**
   * Its exit code, once it has ended. `undefined` if the engine no longer knows it, as after the
   * end of its container, or it takes too long.
   */
  async exitCode(): Promise<number | undefined> {
    const state = await this.#stateWhen(({ Running }) => !Running);
    return state?.ExitCode ?? undefined;
  }

  async signal(signal: ExecSignal): Promise<void> {
    if (this.#processes === undefined) throw new Error('the agent does not see the processes of its engine');
    const state = await this.#stateOnceStarted();
    if (state?.Running !== true) throw new Error('the process has ended');
    await this.#processes.signal(state.Pid, this.#name.dockerId, signal);
  }

  /** Ends its remaining processes. Resolves to `false` if that is not possible from here. */
  async kill(): Promise<boolean> {
    if (this.#processes === undefined) return false;
    const state = await this.#stateOnceStarted();
    if (state?.Running === true) await this.#processes.kill(state.Pid, this.#name.dockerId);
    return true;
  }

  #stateOnceStarted(): Promise<ExecState | undefined> {
    return this.#stateWhen(({ Running, Pid, ExitCode }) => (Running && Pid > 0) || ExitCode !== null);
  }

  async #stateWhen(isSo: (state: ExecState) => boolean): Promise<ExecState | undefined> {
    for (let look = 0; look < execLooks; look++) {
      const state = await this.#engine.inspectExec(this.#name.id);
      if (state === undefined || isSo(state)) return state;
      await sleep(execLookMs);
    }
    return undefined;
  }
}
