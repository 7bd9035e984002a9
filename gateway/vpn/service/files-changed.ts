/**
 * The time at which a peer's files last changed: with the peer, as its owner says, or with its
 * network, which another partition owns.
 */
import Type, { type Static } from 'typebox';
import { decoder } from '../../../lib/decode.ts';
import type { Outcome } from '../../../lib/rpc/partition-client.ts';
import { timestamp } from '../../../lib/time/timestamp.ts';
import { NetworkName } from '../../../schemas/ids.ts';
import { succeeded } from '../../call.ts';
import type { Asker } from './actors.ts';
import type { NetworkKeeper } from './networks/networks.ts';
import { Refusal } from './refusal.ts';

/** The other fields stay as the owner wrote them. */
const Shown = Type.Object({ network: NetworkName, files_changed_at: Type.String() });
type Shown = Static<typeof Shown>;
const decodeShown = decoder(Type.Object({ data: Type.Union([Shown, Type.Array(Shown)]) }));

/** @param outcome with one peer, or with a page of them */
export async function withFilesChanged(
  asker: Asker,
  outcome: Outcome,
  networks: Pick<NetworkKeeper, 'load'>,
): Promise<Outcome> {
  if (!succeeded(outcome)) return outcome;
  const { data, ...rest } = decodeShown(Buffer.from(outcome.body));
  const peers = Array.isArray(data) ? data : [data];
  const names = [...new Set(peers.map(({ network }) => network))];
  const changed = new Map(
    await Promise.all(names.map(async (name) => [name, await networkChangedMs(asker, name, networks)] as const)),
  );
  const withTime = (peer: Shown) => {
    const [ownMs, ofNetworkMs] = [Date.parse(peer.files_changed_at), changed.get(peer.network)];
    return { ...peer, files_changed_at: ofNetworkMs === undefined ? null : timestamp(Math.max(ownMs, ofNetworkMs)) };
  };
  const shown = Array.isArray(data) ? data.map(withTime) : withTime(data);
  return { ...outcome, body: JSON.stringify({ data: shown, ...rest }) };
}

/** `undefined` if its owner does not answer, or if there is no such network any more. */
async function networkChangedMs(
  asker: Asker,
  name: NetworkName,
  networks: Pick<NetworkKeeper, 'load'>,
): Promise<number | undefined> {
  try {
    const { filesChangedAtMs, updatedAtMs } = await networks.load(asker, name);
    return filesChangedAtMs ?? updatedAtMs;
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
