/**
 * The one network of this host's containers. The engine takes two networks of one name without
 * complaint, and then starts no container on either: so one caller makes it while the others wait,
 * and what an earlier agent made twice (a call that was thought lost) is mended.
 */
import type { Network } from '../docker/answers.ts';
import type { Engine } from '../docker/engine.ts';
import { networkBody, networkName, ownerLabels, type Owner } from '../spec/create-body.ts';

/**
 * In the words of Docker 20.10. A container keeps the id of the network that it was made on, so one
 * whose network was removed (`docker network prune`) cannot start on another of the same name.
 */
export const isNetworkGone = (detail: string): boolean =>
  /network \S+ not found|could not find a network matching/i.test(detail);

/** Oldest first. */
async function networksOf(engine: Engine, owner: Owner): Promise<Network[]> {
  const named = (await engine.networks(ownerLabels(owner))).filter(({ Name }) => Name === networkName(owner));
  return named.sort((left, right) => (left.Created < right.Created ? -1 : 1));
}

/** Undefined where none was made yet. */
export const findNetwork = async (engine: Engine, owner: Owner): Promise<Network | undefined> =>
  (await networksOf(engine, owner))[0];

/**
 * @returns a function that resolves when the network is there; undefined where the engine does not
 * show it.
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
