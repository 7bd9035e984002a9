/**
 * Empties journals that nobody needs any more: their member is dead, they are sealed, and the mark
 * of no partition names them. Every process looks at intervals; two may do the same.
 *
 * A mark names a journal before the journal has a commit of that partition, and only the member
 * itself has it named, by a write that is fenced by the partition's epoch. So a journal that was
 * sealed a while ago, and that no mark names, is never needed again. The seal stays for a day, for
 * a put that is as late as that.
 */
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { compareAndSet } from '../../lib/nats/kv-keys.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { createRounds } from '../../lib/time/every.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { days, minutes } from '../../schemas/limits/units.ts';
import { bucketPrefix, buckets, bucketStream, keys } from '../../schemas/records/buckets.ts';
import { decodeValue, encodeValue } from '../runtime/journal/codec.ts';
import { decodeMark } from '../runtime/journal/mark.ts';
import { sealJournal } from '../runtime/journal/read-journal.ts';
import { epochShape, type EpochRecord } from '../runtime/store/epoch.ts';
import {
  createJetStreamStore,
  createJournalStore,
  journalBucketOf,
  membersWithJournals,
} from '../runtime/store/jetstream-store.ts';
import { purgeInSteps } from './purge.ts';

/** A journal that no mark names is emptied when it was sealed for this long. */
export const journalKeptMs = 1 * minutes;

/** Journals of dead members are looked for this often. */
const journalSweepMs = 1 * minutes;
/** Entries that one purge removes. */
const journalPurgeMessages = 128;
/** The seal of an emptied journal stays for this long: a late put still meets it. */
const journalSealTtlMs = 1 * days;

export interface JournalRetentionOptions {
  readonly nc: NatsConnection;
  readonly partitions: number;
  /**
   * Resolves to `true` if a member is dead for good.
   * @throws if that is unknown
   */
  readonly isDead: (member: MemberId) => Promise<boolean>;
  readonly newToken: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface JournalRetention {
  start(): void;
  stop(): Promise<void>;
  /** Looks once. Logs a failure; the next look tries again. */
  look(): Promise<void>;
}

export function createJournalRetention(options: JournalRetentionOptions): JournalRetention {
  const { nc, partitions, isDead, newToken, clock, log } = options;
  const rounds = createRounds(journalSweepMs);
  /** The monotonic time at which this process first saw the journal sealed. */
  const sealedAtMs = new Map<MemberId, number>();

  /**
   * @returns the revision of the seal; `undefined` if the journal is emptied, or its member not
   * dead
   */
  async function sealOf(member: MemberId): Promise<number | undefined> {
    const store = createJournalStore(nc, member, newToken);
    const { value } = await store.readEpoch();
    if (value === null || value === '') return undefined;
    const decoded = decodeValue(value, epochShape);
    if (decoded.ok && decoded.value.emptied === true) return undefined;
    if (!(await isDead(member))) return undefined;
    const onFailure = (error: unknown): void => log.warn('journal_seal_failed', { journal: member, error });
    const nowMs = (): number => clock.nowMs();
    const sealing = await sealJournal({ store, member, newToken, nowMs, signal: rounds.signal, onFailure });
    return sealing.kind === 'sealed' ? sealing.revision : undefined;
  }

  async function namedByMarks(): Promise<Set<MemberId>> {
    const named = new Set<MemberId>();
    for (let partition = 0; partition < partitions; partition++) {
      const store = createJetStreamStore(nc, buckets.state.bucket(partition), newToken);
      const value = await store.read(keys.checkpoint);
      const mark = value === null ? undefined : decodeMark(value);
      if (mark?.ok === false) throw new Error(`the mark of partition ${partition} is damaged (${mark.fault})`);
      if (mark !== undefined) for (const member of mark.value.journals) named.add(member);
    }
    return named;
  }

  async function purge(member: MemberId): Promise<void> {
    const bucket = journalBucketOf(member);
    const manager = await jetstreamManager(nc, { timeout: limits.jetstreamSetupMs });
    const filter = `${bucketPrefix(bucket)}${member}.${keys.anyEntry}`;
    const whole = { filter, from: limits.journalSlots, to: 0, step: journalPurgeMessages };
    await purgeInSteps(manager, bucketStream(bucket), whole, rounds.signal);
  }

  async function empty(member: MemberId, seal: number): Promise<void> {
    await purge(member);
    const record: EpochRecord = {
      token: newToken(),
      owner: member,
      takenAtMs: clock.nowMs(),
      sealed: true,
      emptied: true,
    };
    const subject = `${bucketPrefix(journalBucketOf(member))}${member}.${keys.epoch}`;
    const until = { timeoutMs: limits.commitTimeoutMs, ttlMs: journalSealTtlMs };
    await compareAndSet(nc, subject, encodeValue(record), seal, until);
    sealedAtMs.delete(member);
    log.info('journal_emptied', { member });
  }

  async function lookOnce(): Promise<void> {
    const due: { readonly member: MemberId; readonly seal: number }[] = [];
    for (const member of await membersWithJournals(nc)) {
      const seal = await sealOf(member);
      if (seal === undefined) continue;
      const sinceMs = sealedAtMs.get(member);
      if (sinceMs === undefined) sealedAtMs.set(member, clock.monotonicMs());
      else if (clock.monotonicMs() - sinceMs >= journalKeptMs) due.push({ member, seal });
    }
    if (due.length === 0) return;
    const named = await namedByMarks();
    for (const { member, seal } of due) if (!named.has(member)) await empty(member, seal);
  }

  async function look(): Promise<void> {
    try {
      await lookOnce();
    } catch (error) {
      if (!rounds.signal.aborted) log.warn('journals_check_failed', { error });
    }
  }

  return { start: () => rounds.start(look), stop: rounds.stop, look };
}
