/**
 * Asks every owner of a partition for its part of the desired set, and passes the answers on to the
 * workload. It takes answers in an inbox with a random name, and accepts only those to its own ask,
 * never a doorbell or another sender's message (A7).
 */
import { randomBytes } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { SyncAnswer, type Stranger, type SyncAsk } from '../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { ProtocolError, protocolFields } from '../../schemas/wire/version.ts';
import {
  accept,
  Assembly,
  digestOfSet,
  isOfVersionHeld,
  orderOf,
  refuse,
  type DesiredSet,
  type PartitionAnswer,
  type PartitionSet,
} from '../desired/desired-set.ts';
import type { Volumes } from '../volumes/volumes.ts';
import type { TenantMembers } from '../desired/members.ts';
import type { Workload } from '../desired/workload.ts';
import type { Lease } from './lease.ts';

const decodeAnswer = messageDecoder(SyncAnswer);

export type SyncResult =
  /**
   * Every partition in the ask has answered. `due`: partitions with strangers that this ask did not
   * name.
   */
  | { readonly kind: 'complete'; readonly due: readonly number[] }
  /** The deadline came first; the answers until then were accepted. */
  | { readonly kind: 'partial'; readonly missing: readonly number[] }
  /** No owner answered. */
  | { readonly kind: 'silent' }
  /**
   * Another cluster answered, this one was created again, or the host was removed: no answer was
   * accepted.
   */
  | { readonly kind: 'refused'; readonly why: string };

export interface SyncParts {
  readonly sender: Sender;
  readonly workload: Pick<
    Workload,
    'desired' | 'accept' | 'settled' | 'approveOrphans' | 'strangers' | 'unjudged' | 'applyVerdicts'
  >;
  /** `undefined` if this host has no tenant network. */
  readonly members: Pick<TenantMembers, 'asked' | 'apply' | 'applyRange'> | undefined;
  /** Volumes that containers have left here. */
  readonly volumes: Pick<Volumes, 'strangers' | 'applyVerdicts'>;
  readonly lease: Pick<Lease, 'fenced' | 'settled'>;
  /** Is called with the key that now signs credentials of hosts. */
  readonly onSigner: (key: string) => void;
  /** Is called with the incarnation of the cluster that answers. */
  readonly onIncarnation: (announced: number) => void;
  /**
   * A sync of all partitions is complete.
   * @param ahead the highest epoch that this host has of a partition whose owner answered with
   * lower ones alone, so that it was not obeyed; `undefined` if there is none
   */
  readonly onObeyed: (ahead: number | undefined) => void;
  readonly log: Log;
}

/** Asks once. @param only the partitions that a doorbell named; `undefined` for all */
export function sync(
  nc: NatsConnection,
  parts: SyncParts,
  only: readonly number[] | undefined,
  timeoutMs: number = limits.syncTimeoutMs,
  signal?: AbortSignal,
): Promise<SyncResult> {
  const { workload, volumes, lease, log } = parts;
  const before = workload.desired();
  const held = namedSets(before, only);
  const named = namedFor([...workload.strangers(), ...volumes.strangers()], only, before.partitions);
  const ask: SyncAsk = {
    v: 1,
    ...protocolFields,
    ...(only === undefined ? {} : { partitions: [...only] }),
    held: Object.fromEntries([...held].map(([partition, { epoch, revision }]) => [partition, [epoch, revision]])),
    ...(named.length === 0 ? {} : { strangers: [...named] }),
    digests: digestsOf(held),
    ...(parts.members === undefined ? {} : { members: parts.members.asked(only, before.partitions) }),
  };
  const assembly = new Assembly();
  const answered = new Set<number>();
  /** Partitions whose owners answered with changes that do not lead to the owners' sets. */
  const doubted = new Set<number>();
  /** The epoch that this host has, by partition whose owner is not obeyed. */
  const ahead = new Map<number, number>();
  let partitions = before.partitions;
  let isOver = false;

  return new Promise((resolve) => {
    const finish = (result: SyncResult): void => {
      isOver = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', expire);
      inbox.end();
      resolve(result);
    };
    const expire = (): void => {
      const wanted = only ?? Array.from({ length: partitions ?? 0 }, (_, partition) => partition);
      const missing = wanted.filter((partition) => !answered.has(partition));
      finish(answered.size + doubted.size === 0 ? { kind: 'silent' } : { kind: 'partial', missing });
    };
    const take = (data: Uint8Array): void => {
      for (const answer of answersIn(decodeAnswer(data))) if (!isOver) takeOne(answer);
    };
    const takeOne = (answer: SyncAnswer): void => {
      const refusal = refuse(workload.desired(), answer);
      if (refusal !== undefined) {
        log.error('sync_refused', { ...refusal, ours: before.cluster });
        finish({ kind: 'refused', why: refusal.kind });
        return;
      }
      if (answer.fenced === true) {
        lease.fenced();
        finish({ kind: 'refused', why: 'fenced' });
        return;
      }
      partitions = answer.partitions;
      parts.onIncarnation(answer.incarnation ?? 0);
      if (answer.orphan_word !== null) workload.approveOrphans(answer.orphan_word);
      if (answer.tenant_ipv4 !== undefined) parts.members?.applyRange(answer.tenant_ipv4);
      if (answer.signer !== undefined) parts.onSigner(answer.signer);
      const whole = assembly.add(answer);
      if (whole === undefined) return;
      const has = workload.desired().sets.get(whole.partition);
      if (has !== undefined && orderOf(whole).epoch < has.epoch) ahead.set(whole.partition, has.epoch);
      else ahead.delete(whole.partition);
      const next = accept(workload.desired(), partitions, whole, held);
      if (next !== workload.desired()) workload.accept(next, 'owners');
      if (whole.kind !== 'same') parts.members?.apply(whole.members);
      if (next.doubted.has(whole.partition)) {
        log.error('sync_digest_differs', { partition: whole.partition });
        doubted.add(whole.partition);
      } else {
        answered.add(whole.partition);
        doubted.delete(whole.partition);
      }
      takeVerdicts(whole, next);
      const isHeard = (partition: number): boolean => answered.has(partition) || doubted.has(partition);
      const isDone = only === undefined ? answered.size + doubted.size === partitions : only.every(isHeard);
      if (!isDone) return;
      if (doubted.size > 0) {
        // The desired set is not known: nothing is an orphan, and the next ask comes soon.
        expire();
        return;
      }
      lease.settled();
      workload.settled();
      if (only === undefined) parts.onObeyed(ahead.size === 0 ? undefined : Math.max(...ahead.values()));
      finish({ kind: 'complete', due: unasked(workload.unjudged(), named, partitions) });
    };
    const takeVerdicts = (whole: PartitionAnswer, current: DesiredSet): void => {
      const count = current.partitions;
      if (count === null || !isOfVersionHeld(current, whole)) return;
      const own = named.filter(({ tenant }) => partitionOf(tenant, count) === whole.partition);
      if (own.length === 0) return;
      workload.applyVerdicts(own, whole.gone);
      void volumes.applyVerdicts(own, whole.gone);
    };

    const inbox = subscribeAnswers(nc, subjects.hostInbox(parts.sender), (error, message) => {
      if (error !== null) {
        log.warn('sync_subscription_failed', { error });
        return;
      }
      if (message.data.length === 0 && message.headers?.code === 503) {
        finish({ kind: 'silent' });
        return;
      }
      try {
        take(message.data);
      } catch (error) {
        log.warn(error instanceof ProtocolError ? 'protocol_refused' : 'sync_answer_malformed', { error });
      }
    });
    const timer = setTimeout(expire, timeoutMs);
    signal?.addEventListener('abort', expire, { once: true });
    try {
      nc.publish(subjects.hostSync(parts.sender), JSON.stringify(ask), { reply: inbox.subject });
    } catch (error) {
      log.debug('sync_send_failed', { error });
      finish({ kind: 'silent' });
    }
  });
}

/** The sets that the ask names: of the partitions in it, except those that are to be sent whole. */
function namedSets(
  { sets, doubted }: DesiredSet,
  only: readonly number[] | undefined,
): ReadonlyMap<number, PartitionSet> {
  const isNamed = (partition: number): boolean =>
    !doubted.has(partition) && (only === undefined || only.includes(partition));
  return new Map([...sets].filter(([partition]) => isNamed(partition)));
}

function digestsOf(sets: ReadonlyMap<number, PartitionSet>): NonNullable<SyncAsk['digests']> {
  const digests = [...sets].flatMap(([partition, set]) => {
    const digest = digestOfSet(set);
    return digest === undefined ? [] : [[String(partition), digest] as const];
  });
  return Object.fromEntries(digests);
}

/** The answer, and those for the other partitions that it speaks for. */
function answersIn({ also = [], ...answer }: SyncAnswer): SyncAnswer[] {
  if (!answer.same || answer.fenced === true) return [answer];
  // The other parts of the answer are about its own partition.
  const of = ([partition, epoch, revision]: (typeof also)[number]): SyncAnswer => ({
    ...answer,
    partition,
    epoch,
    revision,
    orphan_word: null,
    gone: [],
  });
  return [answer, ...also.map(of)];
}

/** Strangers of the partitions in the ask, as many as one ask may hold. */
function namedFor(
  strangers: readonly Stranger[],
  only: readonly number[] | undefined,
  partitions: number | null,
): readonly Stranger[] {
  const isAsked = ({ tenant }: Stranger): boolean =>
    only === undefined || partitions === null || only.includes(partitionOf(tenant, partitions));
  return strangers.filter(isAsked).slice(0, limits.syncStrangers);
}

/** Partitions of strangers that appeared after the ask, or did not fit into it. */
function unasked(unjudged: readonly Stranger[], named: readonly Stranger[], partitions: number): readonly number[] {
  const asked = new Set(named.map(({ id }) => id));
  const due = unjudged.filter(({ id }) => !asked.has(id)).map(({ tenant }) => partitionOf(tenant, partitions));
  return [...new Set(due)];
}

/*
 * One subscription for the answers to all asks of a connection. Each ask has a subject of its own
 * below it, with a random name. So an ask costs the server no subscription, which it would spread
 * over its cluster.
 */

export type OnAnswer = (error: Error | null, message: Msg) => void;

export interface Ask {
  /** The subject for its answers. */
  readonly subject: string;
  /** Ends the subscription to its answers. */
  end(): void;
}

interface Inbox {
  readonly subject: string;
  readonly asks: Map<string, OnAnswer>;
}

const inboxes = new WeakMap<NatsConnection, Map<string, Inbox>>();

const token = (): string => randomBytes(16).toString('hex');

/**
 * @param prefix the subject below which the connection's user may subscribe, without the last dot
 */
export function subscribeAnswers(nc: NatsConnection, prefix: string, onAnswer: OnAnswer): Ask {
  const { subject: below, asks } = inboxBelow(nc, prefix);
  const subject = `${below}.${token()}`;
  asks.set(subject, onAnswer);
  return { subject, end: () => void asks.delete(subject) };
}

function inboxBelow(nc: NatsConnection, prefix: string): Inbox {
  const ofConnection = inboxes.get(nc) ?? new Map<string, Inbox>();
  inboxes.set(nc, ofConnection);
  const known = ofConnection.get(prefix);
  if (known !== undefined) return known;
  const inbox: Inbox = { subject: `${prefix}.${token()}`, asks: new Map() };
  nc.subscribe(`${inbox.subject}.*`, {
    callback: (error, message) => {
      if (error === null) {
        inbox.asks.get(message.subject)?.(null, message);
        return;
      }
      // The server has ended the subscription: the next ask makes another.
      ofConnection.delete(prefix);
      for (const onAnswer of inbox.asks.values()) onAnswer(error, message);
    },
  });
  ofConnection.set(prefix, inbox);
  return inbox;
}
