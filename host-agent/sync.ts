/**
 * Asks every owner of a partition what this host should run, and takes the answers in its own random inbox: a doorbell
 * or a stranger's message is never believed, only the answer to one's own question (facts of the two accounts; A7).
 */
import { randomBytes } from 'node:crypto';
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { decoder } from '../lib/decode.ts';
import type { Log } from '../lib/log.ts';
import type { HostKey } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { SyncAnswer, type SyncAsk } from '../schemas/messages.ts';
import { subjects } from '../schemas/subjects.ts';
import { accept, Assembly, refuse, type DesiredSet } from './desired.ts';
import type { OperatorLeave } from './orphans.ts';

const decodeAnswer = decoder(SyncAnswer);

export type SyncResult =
  /** Every partition that was asked for has answered. */
  | { readonly kind: 'complete' }
  /** The deadline came first; what did come was taken in. */
  | { readonly kind: 'partial'; readonly missing: readonly number[] }
  /** Nobody answered. */
  | { readonly kind: 'silent' }
  /** Another cluster answered, or this one was initialised anew: nothing of it was taken in. */
  | { readonly kind: 'refused'; readonly why: string };

export interface SyncTarget {
  readonly host: HostKey;
  current(): DesiredSet;
  update(next: DesiredSet): void;
  /** All that was asked for has been answered. */
  settled(): void;
  leave(given: Partial<OperatorLeave>): void;
  /** Of the cluster that answers. */
  incarnation(told: number): void;
}

/** One question. `only`: the partitions that a bell named; undefined for all. */
export function sync(
  nc: NatsConnection,
  target: SyncTarget,
  only: readonly number[] | undefined,
  log: Log,
  timeoutMs: number = limits.syncTimeoutMs,
): Promise<SyncResult> {
  const before = target.current();
  const held = new Map(before.sets);
  const ask: SyncAsk = {
    v: 1,
    ...(only === undefined ? {} : { partitions: [...only] }),
    held: Object.fromEntries([...held].map(([partition, { epoch, revision }]) => [partition, [epoch, revision]])),
  };
  const assembly = new Assembly();
  const answered = new Set<number>();
  let partitions = before.partitions;

  return new Promise((resolve) => {
    const inbox = `${subjects.hostInbox(target.host)}.${randomBytes(16).toString('hex')}`;
    const finish = (result: SyncResult): void => {
      clearTimeout(timer);
      subscription.unsubscribe();
      resolve(result);
    };
    const expire = (): void => {
      const wanted = only ?? Array.from({ length: partitions ?? 0 }, (_, partition) => partition);
      const missing = wanted.filter((partition) => !answered.has(partition));
      finish(answered.size === 0 ? { kind: 'silent' } : { kind: 'partial', missing });
    };
    const take = (data: Uint8Array): void => {
      const answer = decodeAnswer(data);
      const refusal = refuse(target.current(), answer);
      if (refusal !== undefined) {
        log.error('sync_refused', { ...refusal, ours: before.cluster });
        finish({ kind: 'refused', why: refusal.kind });
        return;
      }
      partitions = answer.partitions;
      target.incarnation(answer.incarnation ?? 0);
      if (answer.orphan_word !== null) target.leave({ word: answer.orphan_word });
      if (answer.draining !== null) target.leave({ isDraining: answer.draining });
      const whole = assembly.add(answer);
      if (whole === undefined) return;
      answered.add(whole.partition);
      const next = accept(target.current(), partitions, whole, held);
      if (next !== target.current()) target.update(next);
      const isDone =
        only === undefined ? answered.size === partitions : only.every((partition) => answered.has(partition));
      if (!isDone) return;
      target.settled();
      finish({ kind: 'complete' });
    };

    const subscription: Subscription = nc.subscribe(inbox, {
      callback: (error, message) => {
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
          log.warn('sync_answer_malformed', { error });
        }
      },
    });
    const timer = setTimeout(expire, timeoutMs);
    try {
      nc.publish(subjects.hostSync(target.host), JSON.stringify(ask), { reply: inbox });
    } catch (error) {
      log.debug('sync_not_sent', { error });
      finish({ kind: 'silent' });
    }
  });
}
