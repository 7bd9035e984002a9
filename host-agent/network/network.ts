/**
 * The one network of this host's containers. The engine accepts two networks of one name, and then
 * starts no container on either. So one caller creates it while the others wait, and a duplicate of
 * an earlier agent (from a call whose answer was lost) is removed.
 */
import type { Network } from '../docker/answers.ts';
import type { Engine } from '../docker/engine.ts';
import { networkName, type Owner, ownerLabels } from '../docker/ownership.ts';

/**
 * All tenants' containers of a host are on one bridge on which they cannot reach each other: the
 * engine drops what goes from one port of the bridge to another (icc off, by iptables and
 * br_netfilter; tried on Linux 6.18 with Docker 20.10). A bridge per tenant would end at some
 * thirty tenants, for want of address pools. An engine configured to leave iptables alone
 * enforces neither. Names resolve on this network, but nothing answers at the address.
 */
export const networkBody = (owner: Owner) => ({
  Driver: 'bridge',
  Options: { 'com.docker.network.bridge.enable_icc': 'false' },
  Labels: ownerLabels(owner),
});

/**
 * The messages of Docker 20.10. A container keeps the id of its network, so one whose network was
 * removed (`docker network prune`) cannot start on another of the same name.
 */
export const isNetworkGone = (detail: string): boolean =>
  /network \S+ not found|could not find a network matching/i.test(detail);

/** Oldest first. */
async function networksOf(engine: Engine, owner: Owner): Promise<Network[]> {
  const named = (await engine.networks(ownerLabels(owner))).filter(({ Name }) => Name === networkName(owner));
  return named.sort((left, right) => (left.Created < right.Created ? -1 : 1));
}

/** `undefined` before one was created. */
export const findNetwork = async (engine: Engine, owner: Owner): Promise<Network | undefined> =>
  (await networksOf(engine, owner))[0];

/**
 * @returns a function that resolves when the network is there, to `undefined` if the engine does
 * not show it
 */
export function createNetworkKeeper(engine: Engine, owner: Owner): () => Promise<Network | undefined> {
  let pending: Promise<Network | undefined> | undefined;

  const ensure = async (): Promise<Network | undefined> => {
    const [oldest, ...twins] = await networksOf(engine, owner);
    for (const { Id } of twins) await engine.removeNetwork(Id);
    if (oldest !== undefined) return oldest;
    await engine.createNetwork(networkName(owner), networkBody(owner));
    return findNetwork(engine, owner);
  };

  return () =>
    (pending ??= ensure().finally(() => {
      pending = undefined;
    }));
}
