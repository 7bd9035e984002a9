/**
 * The commits of a partition while it serves. Changes of turns collect in groups, the journal takes
 * a group after the other, and waiting callers are notified when their group is in it (invariant
 * A3). Each load has its own object, so that a late answer to an earlier one changes nothing.
 */
import type { CautiousClock } from '../../../lib/time/cautious-clock.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Checkpointer } from './checkpoint.ts';
import { type Commit, encodeSection } from './codec.ts';
import { DirtyKeys, Group, type Waiter } from './group.ts';
import type { CommitSource, Journal, PutCommit } from './journal.ts';
import type { Outboxes } from '../events/outboxes.ts';
import { isWithinShare, Shares } from '../shares.ts';

export interface CommitsOptions<Effect extends object> {
  readonly partition: number;
  readonly journal: Pick<Journal, 'ask' | 'hasRoom'>;
  /** Number of the last commit that the load found. */
  readonly last: number;
  readonly checkpointer: Pick<Checkpointer, 'mark' | 'offer'>;
  readonly outbox: Pick<Outboxes, 'offer'>;
  /** Each commit records the time of this clock, by which the partition deletes. */
  readonly expiry: Pick<CautiousClock, 'read'>;
  /** Called after the waiters of the group. */
  readonly onCommitted: (group: Group<Effect>, seconds: number) => void;
  /** Called when writes are refused from now on, or accepted again. */
  readonly onRoom: (hasRoom: boolean, load: { readonly commits: number; readonly queued: number }) => void;
  /** A listener threw (our bug); the other listeners still run, and commits go on. */
  readonly onFault: (error: unknown) => void;
}

/** A group that the journal may take: nothing is added to it any more. */
interface Closed<Effect extends object> {
  readonly group: Group<Effect>;
  readonly commit: Commit;
  readonly section: Uint8Array;
}

export class Commits<Effect extends object> implements CommitSource {
  readonly partition: number;
  readonly #options: CommitsOptions<Effect>;
  readonly #dirtyKeys = new DirtyKeys();
  /** Groups that are not committed, oldest first; turns go into the last. */
  #groups: Group<Effect>[] = [];
  #committed: number;
  /** The number of the last group that the journal has taken. */
  #taken: number;
  #last: number;
  /** The oldest group that is not on its way, if it did not fit into the last entry. */
  #closed: Closed<Effect> | undefined;
  #hadRoom = true;
  /** Bytes in the journal above the mark of the checkpoint, by tenant. */
  readonly #written = new Shares();
  /** The same, by commit; oldest first. */
  readonly #aboveMark: { readonly number: number; readonly bytes: ReadonlyMap<string, number> }[] = [];

  constructor(options: CommitsOptions<Effect>) {
    this.partition = options.partition;
    this.#options = options;
    this.#committed = options.last;
    this.#taken = options.last;
    this.#last = options.last;
  }

  /** Number of the newest group, committed or not. */
  get last(): number {
    return this.#last;
  }
  get committed(): number {
    return this.#committed;
  }
  get isIdle(): boolean {
    return this.#groups.length === 0;
  }
  get hasMore(): boolean {
    return this.#groups.length > 0 && this.#taken < this.#last;
  }
  get commitsAboveMark(): number {
    return this.#last - this.#options.checkpointer.mark;
  }

  get #queued(): number {
    return this.#groups.reduce((sum, { waiters }) => sum + waiters.length, 0);
  }

  get #waitingBytes(): number {
    return this.#groups.reduce((sum, { waitingBytes }) => sum + waitingBytes, 0);
  }

  /** `true` if so much waits for the journal that writes are refused. */
  get isQueueFull(): boolean {
    return this.#queued >= limits.turnsQueued || this.#waitingBytes >= limits.uncommittedBytes;
  }

  /**
   * `true` if a tenant may add to what waits for the journal and for the checkpoint (shares.ts).
   */
  hasShare(tenant: string): boolean {
    let bytes = 0;
    let answers = 0;
    for (const { tenants } of this.#groups) {
      const load = tenants.get(tenant);
      bytes += (load?.bytes ?? 0) + (load?.answerBytes ?? 0);
      answers += load?.answers ?? 0;
    }
    return (
      isWithinShare(bytes, this.#waitingBytes, limits.uncommittedBytes) &&
      isWithinShare(answers, this.#queued, limits.turnsQueued) &&
      this.#written.has(tenant, limits.uncheckpointedBytes)
    );
  }

  /** Called when the mark has moved: commits up to it wait for no checkpoint. */
  checkpointed(mark: number): void {
    const above = this.#aboveMark.findIndex(({ number }) => number > mark);
    for (const { bytes } of this.#aboveMark.splice(0, above < 0 ? this.#aboveMark.length : above)) {
      for (const [tenant, some] of bytes) this.#written.add(tenant, -some);
    }
  }

  hasRoom(): boolean {
    const { journal, onRoom } = this.#options;
    const hasRoom = journal.hasRoom(this.partition) && !this.isQueueFull;
    if (hasRoom !== this.#hadRoom) onRoom(hasRoom, { commits: this.commitsAboveMark, queued: this.#queued });
    this.#hadRoom = hasRoom;
    return hasRoom;
  }

  /**
   * The group for so many bytes of a turn. It is committed after the tick in which it was asked
   * for.
   */
  open(bytes = 0): Group<Effect> {
    const open = this.#groups.at(-1);
    this.#options.journal.ask(this);
    const isClosed = open === undefined || open.number <= this.#taken || open === this.#closed?.group || open.isFull;
    if (!isClosed && open.fits(bytes)) return open;
    const group = new Group<Effect>(++this.#last, this.#dirtyKeys);
    this.#groups.push(group);
    return group;
  }

  /** The number of the commit that a reader of this key waits for; 0 for none. */
  dirtyUntil(key: string): number {
    return this.#dirtyKeys.until(key);
  }

  /** Calls the waiter when this commit is settled: at once if it already is. */
  after(commit: number, waiter: Waiter): void {
    const group = commit <= this.#committed ? undefined : this.#groups.find(({ number }) => number === commit);
    if (group === undefined) waiter(true);
    else group.waiters.push(waiter);
  }

  /** The groups that are not committed, oldest first. */
  uncommitted(): Commit[] {
    return this.#groups.map((group) => group.commit(this.#options.expiry.read()));
  }

  /**
   * Stops committing.
   * @returns the waiters that are left
   */
  close(): Waiter[] {
    const unanswered = this.#groups.flatMap(({ waiters }) => waiters);
    this.#groups = [];
    this.#closed = undefined;
    return unanswered;
  }

  take(maxBytes: number): PutCommit | undefined {
    const closed = this.#closed ?? this.#closeOldest();
    if (closed === undefined || closed.section.length > maxBytes) return undefined;
    const { group, commit, section } = closed;
    this.#closed = undefined;
    this.#taken = group.number;
    return { commit, section, onWritten: (seconds) => this.#settle(closed, seconds) };
  }

  #closeOldest(): Closed<Effect> | undefined {
    const group = this.#groups.find(({ number }) => number > this.#taken);
    if (group === undefined) return undefined;
    const commit = group.commit(this.#options.expiry.read());
    return (this.#closed = { group, commit, section: encodeSection(commit) });
  }

  #settle({ group, commit, section }: Closed<Effect>, seconds: number): void {
    // Closed meanwhile: nobody waits.
    if (this.#groups[0] !== group) return;
    const { outbox, checkpointer } = this.#options;
    this.#groups.shift();
    this.#committed = group.number;
    this.#dirtyKeys.committed(group);
    this.#countWritten(group, section.length);
    // Before the waiters run: they may ask for the events of this commit.
    outbox.offer(commit);
    checkpointer.offer(commit);
    this.#notify(group, seconds);
  }

  /** Divides the bytes of the section among the tenants, in proportion to their changes. */
  #countWritten({ number, tenants }: Group<Effect>, sectionBytes: number): void {
    const loads = [...tenants];
    const sum = loads.reduce((bytes, [, load]) => bytes + load.bytes, 0);
    if (sum === 0) return;
    const bytes = new Map(loads.map(([tenant, load]) => [tenant, Math.round((load.bytes / sum) * sectionBytes)]));
    for (const [tenant, some] of bytes) this.#written.add(tenant, some);
    this.#aboveMark.push({ number, bytes });
  }

  #notify(group: Group<Effect>, seconds: number): void {
    const { onCommitted, onFault } = this.#options;
    const guarded = (listener: (committed: true) => void): void => {
      try {
        listener(true);
      } catch (error) {
        onFault(error);
      }
    };
    // First, so that answers and doorbells leave in one write to the socket.
    for (const waiter of group.waiters) guarded(waiter);
    guarded(() => onCommitted(group, seconds));
  }
}
