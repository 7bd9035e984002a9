/**
 * Asks about peers and networks, one after another within one request; a refusal ends the request.
 */
import { decodeAnswer } from '../../../lib/rpc/decode.ts';
import { limits } from '../../../schemas/limits.ts';
import type { KeyPage, PeerCount } from '../../../schemas/wire/answers.ts';
import type { AnswerOf, Origin, ReadAsk, ReadableType, WriteAsk } from '../../../schemas/wire/asks.ts';
import { succeeded, written, type Writer } from '../../call.ts';
import type { Cause } from '../../../schemas/wire/audit.ts';
import type { AskOwner, Outcome } from '../../../lib/rpc/partition-client.ts';
import { failure } from '../../http/respond.ts';
import { Refusal } from './refusal.ts';

/** The request that asks; a `Call` is one. */
export interface Asker {
  readonly origin: Origin;
  readonly deadlineMs: number;
  readonly cause?: Cause | undefined;
  /** As a `Call` has it. */
  readonly keep?: (of: string, shown: object) => Asker;
}

/** An ask without the fields that `createVpnActors` adds. */
export type Reading = ReadAsk extends infer A
  ? A extends ReadAsk
    ? Omit<A, 'budgetMs' | keyof Origin>
    : never
  : never;
export type Writing = WriteAsk extends infer A
  ? A extends WriteAsk
    ? Omit<A, 'budgetMs' | 'op' | 'cause' | keyof Origin>
    : never
  : never;

/** Writes that are a part of a request whose line in the audit another write leaves. */
const parts: ReadonlySet<Writing['type']> = new Set<Writing['type']>([
  'network.reserve',
  'network.release',
  'network.certify',
  'peer.certify',
  'secret.replace',
]);
const isPart = ({ type }: Writing): boolean => parts.has(type);

type NetworkListed = AnswerOf<'network.list'>['data'][number];

export interface VpnActorsOptions extends Writer {
  readonly ask: AskOwner;
  readonly partitions: () => number | undefined;
}

export interface VpnActors {
  ask(asker: Asker, reading: Reading): Promise<Outcome>;
  askWrite(asker: Asker, writing: Writing): Promise<Outcome>;
  /** The answer's whole body. @throws Refusal with the answer if it is not a success. */
  read<Type extends ReadableType>(asker: Asker, reading: Reading & { type: Type }): Promise<AnswerOf<Type>>;
  write<Type extends ReadableType>(asker: Asker, writing: Writing & { type: Type }): Promise<AnswerOf<Type>>;
  /**
   * The peer counts of every partition. @throws Refusal as `read` does, and until the cluster is
   * known.
   */
  countPeers(asker: Asker): Promise<PeerCount[]>;
  /** Every network of every partition. @throws Refusal as `countPeers` does. */
  networks(asker: Asker): Promise<NetworkListed[]>;
  /** @throws Refusal until the cluster is known. */
  partitions(): number[];
}

/**
 * The body of the answer to an ask of this type. @throws Refusal with the answer if it is not a
 * success.
 */
export function bodyOf<Type extends ReadableType>(type: Type, outcome: Outcome): AnswerOf<Type> {
  if (!succeeded(outcome)) throw new Refusal(outcome);
  return decodeAnswer(type, outcome.body);
}

export function createVpnActors({ ask, partitions, newOperationId }: VpnActorsOptions): VpnActors {
  const asked = (asker: Asker, reading: Reading): Promise<Outcome> =>
    ask('read', { ...reading, ...asker.origin }, asker.deadlineMs);
  const askedWrite = (asker: Asker, writing: Writing): Promise<Outcome> =>
    ask(
      'write',
      { ...writing, ...written({ newOperationId }, isPart(writing) ? { origin: asker.origin } : asker) },
      asker.deadlineMs,
    );
  const read = async <Type extends ReadableType>(asker: Asker, reading: Reading & { type: Type }) =>
    bodyOf<Type>(reading.type, await asked(asker, reading));
  const all = (): number[] => {
    const count = partitions();
    if (count === undefined) throw new Refusal(failure('unavailable'));
    return Array.from({ length: count }, (_, partition) => partition);
  };
  return {
    ask: asked,
    askWrite: askedWrite,
    read,
    write: async <Type extends ReadableType>(asker: Asker, writing: Writing & { type: Type }) =>
      bodyOf<Type>(writing.type, await askedWrite(asker, writing)),
    countPeers: async (asker) =>
      Promise.all(all().map(async (partition) => (await read(asker, { type: 'peer.count', partition })).data)),
    networks: async (asker) => {
      const ofPartition = async (partition: number): Promise<NetworkListed[]> => {
        const items: NetworkListed[] = [];
        for (let after: string | undefined = ''; after !== undefined;) {
          const reading = { type: 'network.list', partition, limit: limits.listMax, after } as const;
          const page: KeyPage<NetworkListed> = await read(asker, reading);
          items.push(...page.data);
          const last = page.data.at(-1);
          after = page.more && last !== undefined ? last.name : undefined;
        }
        return items;
      };
      return (await Promise.all(all().map(ofPartition))).flat();
    },
    partitions: all,
  };
}
