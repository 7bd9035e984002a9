/**
 * The one network of this host's containers. The engine takes two networks of one name without complaint, and then
 * starts no container on either: so one caller makes it while the others wait, and what an earlier agent made twice (a
 * call that was thought lost) is mended.
 */
import type { Engine } from './docker/engine.ts';
import { networkBody, networkName, ownerLabels, type Owner } from './spec.ts';

/**
 * In the words of Docker 20.10. A container keeps the id of the network that it was made on, so one whose network
 * was removed (`docker network prune`) cannot start on another of the same name.
 */
export const isNetworkGone = (detail: string): boolean =>
  /network \S+ not found|could not find a network matching/i.test(detail);

/** @returns a function that resolves when the network is there. */
export function createNetworkKeeper(engine: Engine, owner: Owner): () => Promise<void> {
  const name = networkName(owner);
  let pending: Promise<void> | undefined;

  const ensure = async (): Promise<void> => {
    const named = (await engine.networks(ownerLabels(owner))).filter(({ Name }) => Name === name);
    const [oldest, ...twins] = named.sort((left, right) => (left.Created < right.Created ? -1 : 1));
    if (oldest === undefined) await engine.createNetwork(name, networkBody(owner));
    for (const { Id } of twins) await engine.removeNetwork(Id);
  };

  return () =>
    (pending ??= ensure().finally(() => {
      pending = undefined;
    }));
}
