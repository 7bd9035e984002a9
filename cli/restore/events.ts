/**
 * The events were saved after the partitions, so some tell of entries that no restored partition
 * has. Their ids will be given again, to other events, and readers take an id that they have seen
 * for old: so these messages go.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { api, ApiRefusal } from '../backup/stream.ts';

const decodeEvents = decoder(Type.Array(Type.Object({ id: Type.String({ pattern: '^\\d+-\\d+-\\d+$' }) })));
const { name } = streams.events;

/** The first message from a sequence on; undefined where there is none. */
async function nextMessage(
  nc: NatsConnection,
  seq: number,
): Promise<{ readonly seq: number; readonly data: string } | undefined> {
  try {
    const request = { seq, next_by_subj: '>' };
    return (await api<{ message: { seq: number; data: string } }>(nc, `STREAM.MSG.GET.${name}`, request)).message;
  } catch (error) {
    if (error instanceof ApiRefusal && error.error.code === 404) return undefined;
    throw error;
  }
}

/**
 * @param known the events up to this sequence are known to every partition
 * @param last the sequence of the last
 * @param lastEntry of a partition; undefined where it can't be told
 * @returns how many messages went.
 */
export async function dropUnknownEvents(
  nc: NatsConnection,
  known: number,
  last: number,
  lastEntry: (partition: number) => number | undefined,
): Promise<number> {
  const isUnknown = ({ id }: { readonly id: string }): boolean => {
    const [partition, entry] = id.split('-').map(Number);
    return entry !== undefined && entry > (lastEntry(partition ?? -1) ?? Infinity);
  };
  const unknown: number[] = [];
  for (let seq = known + 1; seq <= last; seq++) {
    // From the leader: of three replicas one may not have got so far yet.
    const found = await nextMessage(nc, seq);
    if (found === undefined) break;
    seq = found.seq;
    // One with an unknown event was published after its partition was saved: the known ones in it
    // are in the journal still.
    if (decodeEvents(Buffer.from(found.data, 'base64')).some(isUnknown)) unknown.push(seq);
  }
  for (const seq of unknown) await api(nc, `STREAM.MSG.DELETE.${name}`, { seq, no_erase: true });
  return unknown.length;
}
