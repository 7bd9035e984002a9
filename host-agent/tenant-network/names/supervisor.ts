/**
 * Keeps one resolver running: makes its sockets in the router namespace, again if that namespace is
 * replaced, and hands them to a process without rights, which answers.
 */
import { fork, type ChildProcess } from 'node:child_process';
import type { Socket as DatagramSocket } from 'node:dgram';
import { statSync } from 'node:fs';
import type { Server } from 'node:net';
import type { Log } from '../../../lib/log.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { seconds } from '../../../schemas/limits/units.ts';
import { routerFile } from '../namespaces.ts';
import { give } from './binding.ts';

const lookMs = 1 * seconds;
const bindMs = 10 * seconds;

export interface SupervisorOptions {
  readonly router: string;
  /** The addresses of this resolver; `undefined` if nothing is desired yet. */
  readonly addresses: () => readonly string[] | undefined;
  /** The program itself, which is started in another mode. */
  readonly program: string;
  readonly log: Log;
}

export class ResolverSupervisor {
  readonly #options: SupervisorOptions;
  #worker: ChildProcess | undefined;
  /** The namespace and the addresses of the worker's sockets. */
  #bound = '';

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#look();
      } catch (error) {
        this.#options.log.warn('resolver_bind_failed', { error });
      }
      await sleep(lookMs, signal);
    }
    this.#worker?.kill('SIGTERM');
  }

  async #look(): Promise<void> {
    const addresses = this.#options.addresses();
    if (addresses === undefined) return;
    const wanted = `${namespaceId(this.#options.router)} ${addresses.join(' ')}`;
    if (this.#worker !== undefined && this.#bound === wanted) return;
    // Its sockets belong to another namespace.
    this.#worker?.kill('SIGTERM');
    const worker = (this.#worker = this.#start());
    this.#bound = '';
    await this.#bind(addresses, worker);
    this.#bound = wanted;
    this.#options.log.info('resolver_bound', { addresses });
  }

  /** Starts the worker without the rights of this process. */
  #start(): ChildProcess {
    const { program, log } = this.#options;
    const isRoot = process.getuid?.() === 0;
    const dropped = ['--inh-caps=-all', '--ambient-caps=-all', ...(isRoot ? ['--bounding-set=-all'] : [])];
    const worker = fork(program, ['answer'], {
      execPath: 'setpriv',
      execArgv: ['--no-new-privs', ...dropped, process.execPath, '--enable-source-maps'],
    });
    worker.once('error', (error) => log.error('resolver_failed', { error }));
    worker.once('exit', (code, signal) => {
      if (this.#worker !== worker) return;
      log.warn('resolver_ended', { code, signal });
      this.#worker = undefined;
    });
    return worker;
  }

  #bind(addresses: readonly string[], worker: ChildProcess): Promise<void> {
    const { program, router } = this.#options;
    return new Promise((resolve, reject) => {
      const binder = fork(program, ['bind', ...addresses], {
        execPath: 'nsenter',
        execArgv: [`--net=${routerFile(router)}`, process.execPath, '--enable-source-maps'],
      });
      const timer = setTimeout(() => binder.kill('SIGKILL'), bindMs);
      const given: Promise<void>[] = [];
      binder.on('message', (_message, handle) => {
        const socket = handle as DatagramSocket | Server;
        given.push(give((...parts) => worker.send(...parts), socket));
      });
      binder.once('error', reject);
      binder.once('exit', (code) => {
        clearTimeout(timer);
        if (code === 0) Promise.all(given).then(() => resolve(), reject);
        else reject(new Error(`the sockets of the resolver could not be made (exit code ${code})`));
      });
    });
  }
}

/** An id that differs for each network namespace. */
function namespaceId(router: string): string {
  const { dev, ino } = statSync(routerFile(router));
  return `${dev}:${ino}`;
}
