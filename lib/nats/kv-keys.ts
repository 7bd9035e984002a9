/**
 * Reads a key of a JetStream KV bucket (NATS ADR-8), and changes it by compare-and-set, in the
 * server's own protocol. The client's KV hides the server's error, which tells a changed key from
 * an unknown outcome.
 */
import { headers, NoRespondersError, RequestError, type NatsConnection } from '@nats-io/transport-node';
import Type, { type Static } from 'typebox';
import { decoder } from '../decode.ts';

export const expectedSequence = 'Nats-Expected-Last-Subject-Sequence';

/** `wrong last sequence`: the key is at another revision. */
export const wrongLastSequence = 10071;
/**
 * Another write with the same check is in flight on a replicated stream. The server refused this
 * one, which may be retried.
 */
export const checkInFlight = 10164;
/** A message, its headers, or an atomic batch is larger than the stream takes (NATS ADR-50). */
export const tooLarge: ReadonlySet<number | undefined> = new Set([10054, 10097, 10199]);

const ApiError = Type.Object({
  code: Type.Integer(),
  err_code: Type.Optional(Type.Integer()),
  description: Type.Optional(Type.String()),
});

/** JetStream's answer to a message for a stream. */
const PublishAck = Type.Object({ seq: Type.Optional(Type.Integer()), error: Type.Optional(ApiError) });
export type PublishAck = Static<typeof PublishAck>;
/** @throws DecodeError */
export const decodeAck: (bytes: Uint8Array) => PublishAck = decoder(PublishAck);

const decodeLast = decoder(
  Type.Object({
    message: Type.Optional(Type.Object({ seq: Type.Integer(), data: Type.Optional(Type.String()) })),
    error: Type.Optional(ApiError),
  }),
);

export class StoreError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = 'StoreError';
  }
}

/** True if a request failed because its subject has no subscriber. */
export const isNoResponders = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());

/** A TTL as the header `Nats-TTL` has it (NATS ADR-43): whole seconds. */
export const ttl = (ms: number): string => `${Math.ceil(ms / 1000)}s`;

/**
 * The newest message of a subject, from the stream's leader; with revision 0 if there is none. A
 * leader that is cut off gives stale answers until it notices. `api`: the subject to ask, if it is
 * not JetStream's own.
 */
export async function readLast(
  nc: NatsConnection,
  stream: string,
  subject: string,
  timeoutMs: number,
  api = `$JS.API.STREAM.MSG.GET.${stream}`,
): Promise<{ readonly revision: number; readonly value: string | null }> {
  const request = JSON.stringify({ last_by_subj: subject });
  const answer = await nc.request(api, request, { timeout: timeoutMs });
  const reply = decodeLast(answer.data);
  if (reply.message !== undefined) {
    return { revision: reply.message.seq, value: Buffer.from(reply.message.data ?? '', 'base64').toString() };
  }
  if (reply.error?.code === 404) return { revision: 0, value: null };
  throw new StoreError(`reading ${subject}: ${reply.error?.description ?? 'no answer'}`);
}

/**
 * Puts a value if the key is at the expected revision; 0: if it does not exist.
 * @returns the new revision; `undefined` if the key had changed.
 * @throws if the outcome is unknown.
 */
export async function compareAndSet(
  nc: NatsConnection,
  subject: string,
  value: string,
  expected: number,
  options: { readonly timeoutMs: number; readonly ttlMs?: number },
): Promise<number | undefined> {
  const head = headers();
  head.set(expectedSequence, String(expected));
  if (options.ttlMs !== undefined) head.set('Nats-TTL', ttl(options.ttlMs));
  const ack = decodeAck((await nc.request(subject, value, { headers: head, timeout: options.timeoutMs })).data);
  if (ack.error === undefined && ack.seq !== undefined) return ack.seq;
  if (ack.error?.err_code === wrongLastSequence) return undefined;
  throw new StoreError(`moving ${subject}: ${ack.error?.description ?? 'no sequence'}`);
}
