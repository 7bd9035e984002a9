/**
 * Asks about peers and networks, one after another within one request; a refusal ends the request.
 */
import type { OperationId } from '../../../schemas/ids.ts';
import type { KeyPage } from '../../../schemas/wire/answers.ts';
import type { ReadAsk, WriteAsk } from '../../../schemas/wire/asks.ts';
import { succeeded } from '../../http/call.ts';
import type { LaneKind, Outcome, Question } from '../../../lib/rpc/coalescer.ts';
import { failure } from '../../http/respond.ts';
import { Refusal } from './refusal.ts';

/** Of the request that asks. A `Call` is one. */
export interface Asker {
  readonly requestId: string;
  readonly deadlineMs: number;
}

/** An ask without what is added here. */
export type Reading = ReadAsk extends infer A ? (A extends ReadAsk ? Omit<A, 'budgetMs' | 'rid'> : never) : never;
export type Writing = WriteAsk extends infer A
  ? A extends WriteAsk
    ? Omit<A, 'budgetMs' | 'rid' | 'op'>
    : never
  : never;

export interface VpnActorsOptions {
  readonly ask: (kind: LaneKind, question: Question, deadlineMs: number) => Promise<Outcome>;
  readonly partitions: () => number | undefined;
  readonly newOperationId: () => OperationId;
}

export interface VpnActors {
  ask(asker: Asker, reading: Reading): Promise<Outcome>;
  askWrite(asker: Asker, writing: Writing): Promise<Outcome>;
  /** The answer's whole body. @throws Refusal with the answer, where it is no success. */
  read<T>(asker: Asker, reading: Reading): Promise<T>;
  write<T>(asker: Asker, writing: Writing): Promise<T>;
  /**
   * `data` of every partition's answer. @throws Refusal as `read` does, and until the cluster is
   * known.
   */
  readAll<T>(asker: Asker, readingOf: (partition: number) => Reading): Promise<T[]>;
  /** Every page of every partition. @throws Refusal as `readAll` does. */
  readPages<T>(
    asker: Asker,
    readingOf: (partition: number, after: string) => Reading,
    keyOf: (item: T) => string,
  ): Promise<T[]>;
  /** @throws Refusal until the cluster is known. */
  partitions(): number[];
}

/** Of an answer. @throws Refusal with it, where it is no success. */
export function bodyOf<T>(outcome: Outcome): T {
  if (!succeeded(outcome)) throw new Refusal(outcome);
  return (outcome.body === '' ? undefined : JSON.parse(outcome.body)) as T;
}

export function createVpnActors({ ask, partitions, newOperationId }: VpnActorsOptions): VpnActors {
  const asked = (asker: Asker, reading: Reading): Promise<Outcome> =>
    ask('read', { ...reading, rid: asker.requestId }, asker.deadlineMs);
  const askedWrite = (asker: Asker, writing: Writing): Promise<Outcome> =>
    ask('write', { ...writing, rid: asker.requestId, op: newOperationId() }, asker.deadlineMs);
  const all = (): number[] => {
    const count = partitions();
    if (count === undefined) throw new Refusal(failure('unavailable'));
    return Array.from({ length: count }, (_, partition) => partition);
  };
  return {
    ask: asked,
    askWrite: askedWrite,
    read: async (asker, reading) => bodyOf(await asked(asker, reading)),
    write: async (asker, writing) => bodyOf(await askedWrite(asker, writing)),
    readAll: async <T>(asker: Asker, readingOf: (partition: number) => Reading) =>
      Promise.all(all().map(async (partition) => bodyOf<{ data: T }>(await asked(asker, readingOf(partition))).data)),
    readPages: async <T>(
      asker: Asker,
      readingOf: (partition: number, after: string) => Reading,
      keyOf: (item: T) => string,
    ) => {
      const ofPartition = async (partition: number): Promise<T[]> => {
        const items: T[] = [];
        for (let after: string | undefined = ''; after !== undefined;) {
          const page: KeyPage<T> = bodyOf(await asked(asker, readingOf(partition, after)));
          items.push(...page.data);
          const last = page.data.at(-1);
          after = page.more && last !== undefined ? keyOf(last) : undefined;
        }
        return items;
      };
      return (await Promise.all(all().map(ofPartition))).flat();
    },
    partitions: all,
  };
}
