/**
 * Worker threads for work that is too long for the event loop: keys, certificates, bundles,
 * pictures. The pool starts a few when they are first needed, at a lower priority than the API's
 * thread. Jobs wait in a bounded queue, each with a deadline; short ones precede those that make
 * keys. Idle threads make RSA keys ahead, so that most new peers do not wait for theirs.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { systemClock, type Clock } from '../../../lib/time/clock.ts';
import type { Log } from '../../../lib/log.ts';
import type { JobInput, JobKind, JobOrder, JobOutput, Order, Report } from './jobs.ts';
import { seconds } from '../../../schemas/limits/units.ts';

/** Jobs that wait for a thread. */
export const vpnJobsQueued = 1024;
/** Deadline of a job. */
const vpnJobMs = 30 * seconds;
/** Threads that make keys and bundles: as many as the machine has processors, up to this. */
const vpnThreads = 4;
/** RSA keys that are made ahead. */
const spareRsaKeys = 16;

/**
 * The job was not done and can be repeated: the queue is full, its deadline came, or the pool is
 * stopping.
 */
export class PoolBusy extends Error {
  override readonly name = 'PoolBusy';
  readonly why: 'full' | 'late' | 'stopping';

  constructor(why: PoolBusy['why']) {
    super(
      { full: 'too many jobs are waiting', late: 'the deadline came first', stopping: 'the pool is stopping' }[why],
    );
    this.why = why;
  }
}

/** The job's thread ended, or was ended because it took too long. */
export class WorkerDied extends Error {
  override readonly name = 'WorkerDied';

  constructor(kind: string, cause: unknown) {
    super(`the thread that made a ${kind} ended`, { cause });
  }
}

export class JobFailed extends Error {
  override readonly name = 'JobFailed';

  constructor(kind: string, message: string) {
    super(`${kind}: ${message}`);
  }
}

export interface PkiPoolOptions {
  readonly log: Log;
  readonly workers?: number;
  readonly clock?: Clock;
  /** The longest time for a job to wait and run; a thread that exceeds it is ended. */
  readonly jobMs?: number;
  readonly spareRsaKeys?: number;
  /** The program of the threads; tests replace it by one that fails. */
  readonly program?: URL;
}

/** These jobs take milliseconds; the others make RSA keys or accompany those that do. */
const shortJobs: ReadonlySet<JobKind> = new Set(['p12', 'crl', 'qr', 'client', 'server', 'ca']);

interface Job {
  readonly kind: JobKind;
  readonly order: JobOrder;
  readonly settle: (settled: { readonly output: unknown } | { readonly error: Error }) => void;
}

type Task = { readonly of: 'nothing' } | { readonly of: 'spare' } | { readonly of: 'job'; readonly job: Job };

interface Thread {
  readonly worker: Worker;
  task: Task;
  watchdog: NodeJS.Timeout | undefined;
  died: unknown;
}

// The compiler does not rewrite the text of a URL, so this names the compiled file.
const defaultProgram = new URL('./worker.js', import.meta.url);

export class PkiPool {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #jobMs: number;
  readonly #program: URL;
  readonly #threadsMax: number;
  readonly #sparesMax: number;
  readonly #threads = new Set<Thread>();
  readonly #short: Job[] = [];
  readonly #long: Job[] = [];
  readonly #spares: string[] = [];
  /** True after the first request for a key; an unused gateway makes none. */
  #wantsSpares = false;
  #isStopping = false;

  constructor(options: PkiPoolOptions) {
    this.#log = options.log;
    this.#clock = options.clock ?? systemClock;
    this.#jobMs = options.jobMs ?? vpnJobMs;
    this.#program = options.program ?? defaultProgram;
    this.#threadsMax = options.workers ?? Math.min(availableParallelism(), vpnThreads);
    this.#sparesMax = options.spareRsaKeys ?? spareRsaKeys;
  }

  /**
   * Runs a job. @param deadlineMs by the monotonic clock @throws PoolBusy, WorkerDied, JobFailed
   */
  run<K extends JobKind>(kind: K, input: JobInput<K>, deadlineMs = Infinity): Promise<JobOutput<K>> {
    const leftMs = Math.min(deadlineMs - this.#clock.monotonicMs(), this.#jobMs);
    if (this.#isStopping) return Promise.reject(new PoolBusy('stopping'));
    if (leftMs <= 0) return Promise.reject(new PoolBusy('late'));
    if (this.queued() >= vpnJobsQueued) return Promise.reject(new PoolBusy('full'));
    return new Promise((resolve, reject) => {
      const queue = shortJobs.has(kind) ? this.#short : this.#long;
      const job: Job = {
        kind,
        // The compiler cannot see that kind and input belong together.
        order: { kind, input } as JobOrder,
        settle: (settled) => {
          clearTimeout(timer);
          if ('error' in settled) reject(settled.error);
          else resolve(settled.output as JobOutput<K>);
        },
      };
      // A waiting job is removed. A running one finishes, and its result is discarded.
      const timer = setTimeout(() => {
        const index = queue.indexOf(job);
        if (index >= 0) queue.splice(index, 1);
        job.settle({ error: new PoolBusy('late') });
      }, leftMs);
      queue.push(job);
      this.#wantsSpares ||= kind === 'peer';
      this.#assign();
    });
  }

  /** The number of jobs that wait for a thread. */
  queued(): number {
    return this.#short.length + this.#long.length;
  }

  /** The number of RSA keys that were made ahead. */
  spareKeys(): number {
    return this.#spares.length;
  }

  /** Refuses waiting and running jobs, and ends the threads. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const job of [...this.#short.splice(0), ...this.#long.splice(0)]) {
      job.settle({ error: new PoolBusy('stopping') });
    }
    for (const { task } of this.#threads) {
      if (task.of === 'job') task.job.settle({ error: new PoolBusy('stopping') });
    }
    this.#spares.length = 0;
    await Promise.all([...this.#threads].map(({ worker }) => worker.terminate()));
  }

  #assign(): void {
    while (this.queued() > 0) {
      const thread = this.#idleThread() ?? this.#startThread();
      if (thread === undefined) return;
      const job = this.#short.shift() ?? this.#long.shift();
      if (job !== undefined) this.#begin(thread, job);
    }
    this.#makeSpare();
  }

  #idleThread(): Thread | undefined {
    return [...this.#threads].find(({ task }) => task.of === 'nothing');
  }

  #startThread(): Thread | undefined {
    if (this.#threads.size >= this.#threadsMax) return undefined;
    // Threads get neither the environment, which may hold the operator's keys, nor this process's
    // options.
    const worker = new Worker(this.#program, { name: 'pki', env: {}, execArgv: [] });
    const thread: Thread = { worker, task: { of: 'nothing' }, watchdog: undefined, died: undefined };
    worker.unref();
    worker.on('message', (report: Report) => this.#finish(thread, report));
    worker.on('error', (error) => (thread.died = error));
    worker.on('exit', (code) => this.#onExit(thread, code));
    this.#threads.add(thread);
    return thread;
  }

  #begin(thread: Thread, job: Job): void {
    const spareKeyPem = job.order.kind === 'peer' ? this.#spares.pop() : undefined;
    this.#send(thread, { of: 'job', job }, spareKeyPem === undefined ? job.order : { ...job.order, spareKeyPem });
    // A running job keeps the process alive; an idle thread does not.
    thread.worker.ref();
  }

  /**
   * Makes one spare key at a time, and only while no job waits. So a short job finds another
   * thread, or waits for one key at most.
   */
  #makeSpare(): void {
    const isMaking = [...this.#threads].some(({ task }) => task.of === 'spare');
    if (!this.#wantsSpares || isMaking || this.#spares.length >= this.#sparesMax || this.#isStopping) return;
    const thread = this.#idleThread();
    if (thread !== undefined) this.#send(thread, { of: 'spare' }, { kind: 'spare' });
  }

  #send(thread: Thread, task: Task, order: Order): void {
    thread.task = task;
    thread.watchdog = setTimeout(() => void thread.worker.terminate(), this.#jobMs).unref();
    thread.worker.postMessage(order);
  }

  #finish(thread: Thread, report: Report): void {
    const { task } = thread;
    this.#rest(thread);
    if (task.of === 'job') {
      if (report.ok) task.job.settle({ output: report.output });
      else task.job.settle({ error: new JobFailed(task.job.kind, report.message) });
    } else if (task.of === 'spare') {
      if (report.ok && typeof report.output === 'string') this.#spares.push(report.output);
      else this.#giveUpSpares();
    }
    this.#assign();
  }

  /** The next job starts another thread. */
  #onExit(thread: Thread, code: number): void {
    const { task } = thread;
    this.#rest(thread);
    this.#threads.delete(thread);
    if (this.#isStopping) return;
    this.#log.error('pki_thread_ended', {
      code,
      task: task.of === 'job' ? task.job.kind : task.of,
      error: thread.died,
    });
    if (task.of === 'job') task.job.settle({ error: new WorkerDied(task.job.kind, thread.died) });
    if (task.of === 'spare') this.#giveUpSpares();
    this.#assign();
  }

  /**
   * Stops until the next peer: no job waits for a spare key, and a failure would repeat at once.
   */
  #giveUpSpares(): void {
    this.#wantsSpares = false;
  }

  #rest(thread: Thread): void {
    thread.task = { of: 'nothing' };
    clearTimeout(thread.watchdog);
    thread.watchdog = undefined;
    thread.worker.unref();
  }
}
