/**
 * The journals that a process uses: its own, one for each member that it is, and those of dead
 * members whose partitions it takes.
 */
import { DeadlineError } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { Log } from '../../../lib/log.ts';
import type { Slices } from '../../../lib/time/slices.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { moveEpoch, type EpochRecord, type MovableFrom } from '../store/epoch.ts';
import { Fence, type WentBack } from '../store/fence.ts';
import type { Store } from '../store/store.ts';
import type { Commit } from './codec.ts';
import { Journal, type JournalObserver } from './journal.ts';
import { LoadError } from './load-error.ts';
import { readSealed, sealJournal, SealedJournal } from './read-journal.ts';
import { seconds } from '../../../schemas/limits/units.ts';

/** Time for which a journal that was read serves the partitions that are loaded next. */
export const journalReadKeptMs = 30 * seconds;

/** The time to seal and read a journal; then the load of a partition tries again. */
const journalReadMs = 20_000;

export interface JournalsOptions {
  readonly storeOf: (member: MemberId) => Store;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
  readonly newToken: () => string;
  /** Another process has sealed the journal of this member, which is dead for the others. */
  readonly onSealed: (member: MemberId) => void;
  /** The journal of this process went back in time, and is held. */
  readonly onWentBack: (member: MemberId, sequences: WentBack) => void;
  readonly observer: JournalsObserver;
}

export interface JournalsObserver extends JournalObserver {
  /** A put had no answer, and is resolved in place. */
  unknown(): void;
}

export class Journals {
  readonly #options: JournalsOptions;
  #own:
    | { readonly member: MemberId; readonly opening: Promise<Journal | undefined>; readonly ended: AbortController }
    | undefined;
  /** Members that this process was: a load of one of them may still be under way. */
  readonly #former = new Set<MemberId>();
  readonly #read = new Map<MemberId, Promise<SealedJournal>>();

  constructor(options: JournalsOptions) {
    this.#options = options;
  }

  /**
   * The journal of this process as that member, opened at the first call.
   * @throws where it can't be opened: the member is not this process any more
   */
  async open(member: MemberId): Promise<Journal> {
    if (this.#former.has(member)) throw new Error(`this process is member ${member} no more`);
    if (this.#own?.member !== member) {
      this.close();
      const ended = new AbortController();
      this.#own = { member, ended, opening: this.#open(member, ended.signal) };
    }
    const journal = await this.#own.opening;
    if (journal === undefined) throw new Error(`the journal of member ${member} can't be opened`);
    return journal;
  }

  /** The store went back in time: this process's journal acknowledges nothing more. */
  hold(): void {
    void this.#own?.opening.then((journal) => journal?.hold());
  }

  /** Nothing is put into this process's journal any more. */
  close(): void {
    const own = this.#own;
    if (own !== undefined) this.#former.add(own.member);
    this.#own = undefined;
    own?.ended.abort();
    void own?.opening.then((journal) => journal?.close());
  }

  /**
   * The commits of a partition in these journals, sealed and read if that is not done yet.
   * @throws LoadError where one may be missing, and the signal's reason
   */
  async commitsOf(members: readonly MemberId[], partition: number, signal: AbortSignal): Promise<Commit[]> {
    const commits: Commit[] = [];
    for (const member of members) {
      if (this.#own?.member === member) {
        commits.push(...(await (await this.open(member)).commitsOf(partition)));
        continue;
      }
      commits.push(...(await this.#sealedCommitsOf(member, partition, signal)));
    }
    return commits;
  }

  async #sealedCommitsOf(member: MemberId, partition: number, signal: AbortSignal): Promise<Commit[]> {
    const reading = this.#sealed(member);
    const journal = await reading;
    try {
      return await this.#options.slices.run('load', journal.commitsOf(partition), signal);
    } catch (error) {
      // Another replica may have it undamaged.
      if (error instanceof LoadError && this.#read.get(member) === reading) this.#read.delete(member);
      throw error;
    }
  }

  async #open(member: MemberId, signal: AbortSignal): Promise<Journal | undefined> {
    const { storeOf, clock, log, observer, onSealed, onWentBack } = this.#options;
    const store = storeOf(member);
    const moved = await this.#move(
      store,
      member,
      { mayTake: async (record) => Promise.resolve(record === undefined) },
      signal,
    );
    if (moved.kind === 'refused') return undefined;
    const fence = new Fence({
      revision: moved.epoch,
      move: (from) => this.#move(store, member, { epoch: from }, signal),
      onUnknown: (error) => {
        log.warn('write_unknown', { journal: member, error });
        observer.unknown();
      },
      onRefused: (error) => log.error('write_refused', { journal: member, error }),
      onWentBack: (sequences) => {
        journal.hold();
        onWentBack(member, sequences);
      },
      onLost: () => {
        log.error('journal_sealed', { member });
        onSealed(member);
      },
    });
    const onFault = (error: unknown): void => log.error('answer_failed', { journal: member, error });
    const journal = new Journal({ member, store, fence, clock, observer, onFault });
    return journal;
  }

  #move(store: Store, member: MemberId, from: MovableFrom, signal: AbortSignal) {
    const { clock, log, newToken } = this.#options;
    const record: EpochRecord = { token: newToken(), owner: member, takenAtMs: clock.nowMs() };
    const onFailure = (error: unknown): void => log.warn('epoch_take_failed', { journal: member, error });
    return moveEpoch(store, record, { from, signal, onFailure });
  }

  /**
   * A sealed journal, read once for all partitions that are loaded soon after. A damaged one serves
   * only those that wait for it now: the next read may reach another replica.
   */
  #sealed(member: MemberId): Promise<SealedJournal> {
    let reading = this.#read.get(member);
    if (reading === undefined) {
      reading = this.#seal(member);
      this.#read.set(member, reading);
      const forget = (): void => {
        if (this.#read.get(member) === reading) this.#read.delete(member);
      };
      // The timer keeps no process from its end.
      const keep = (journal: SealedJournal): void => {
        if (journal.isWhole) setTimeout(forget, journalReadKeptMs).unref();
        else forget();
      };
      reading.then(keep, forget);
    }
    return reading;
  }

  /** Its deadline is its own: several partitions wait for it. */
  async #seal(member: MemberId): Promise<SealedJournal> {
    const deadline = new AbortController();
    const late = new DeadlineError(`sealing and reading the journal of member ${member}`, journalReadMs);
    const timer = setTimeout(() => deadline.abort(late), journalReadMs);
    try {
      return await this.#sealAndRead(member, deadline.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  async #sealAndRead(member: MemberId, signal: AbortSignal): Promise<SealedJournal> {
    const { storeOf, clock, log, newToken, slices } = this.#options;
    const store = storeOf(member);
    const onFailure = (error: unknown): void => log.warn('journal_seal_failed', { journal: member, error });
    const nowMs = (): number => clock.nowMs();
    const sealing = await sealJournal({ store, member, newToken, nowMs, signal, onFailure });
    if (sealing.kind === 'sealed') return readSealed({ store, member }, sealing.revision, slices, signal);
    if (sealing.kind === 'gone') throw new LoadError(`the journal of member ${member} is gone`);
    log.error('journal_given_up', { member });
    return new SealedJournal(member, [], 0);
  }
}
