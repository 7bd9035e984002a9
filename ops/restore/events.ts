/**
 * Deletes events, and lines of the audit, that no restored partition knows. The backup saves their
 * streams after the partitions, so a stream may hold events of later journal entries. Owners will
 * assign their ids to other events, and a reader skips an id that it has seen.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { api, ApiRefusal } from '../backup/stream.ts';

const decodeEvents = decoder(Type.Array(Type.Object({ id: Type.String({ pattern: '^\\d+-\\d+-\\d+$' }) })));

/** The first message at or after a sequence; undefined if there is none. */
async function nextMessage(
  nc: NatsConnection,
  stream: string,
  seq: number,
): Promise<{ readonly seq: number; readonly data: string } | undefined> {
  try {
    const request = { seq, next_by_subj: '>' };
    return (await api<{ message: { seq: number; data: string } }>(nc, `STREAM.MSG.GET.${stream}`, request)).message;
  } catch (error) {
    if (error instanceof ApiRefusal && error.error.code === 404) return undefined;
    throw error;
  }
}

/**
 * @param range `known`: every partition knows the events up to this sequence; `last`: the sequence
 *   of the last restored message
 * @param lastEntry the last journal entry of a partition; undefined if it does not load
 * @param check called before each deletion; throws if this restore must stop
 * @returns number of deleted messages
 */
export async function dropUnknownEvents(
  nc: NatsConnection,
  { stream, known, last }: { readonly stream: string; readonly known: number; readonly last: number },
  lastEntry: (partition: number) => number | undefined,
  check: () => Promise<unknown>,
): Promise<number> {
  const isUnknown = ({ id }: { readonly id: string }): boolean => {
    const [partition, entry] = id.split('-').map(Number);
    return entry !== undefined && entry > (lastEntry(partition ?? -1) ?? Infinity);
  };
  const unknown: number[] = [];
  for (let seq = known + 1; seq <= last; seq++) {
    // STREAM.MSG.GET reads from the leader: another replica may not have this message yet.
    const found = await nextMessage(nc, stream, seq);
    if (found === undefined) break;
    seq = found.seq;
    // A message with an unknown event was published after its partition was saved. The journal
    // still holds the known events of this message, so the owner publishes them again.
    if (decodeEvents(Buffer.from(found.data, 'base64')).some(isUnknown)) unknown.push(seq);
  }
  for (const seq of unknown) {
    await check();
    await api(nc, `STREAM.MSG.DELETE.${stream}`, { seq, no_erase: true });
  }
  return unknown.length;
}
