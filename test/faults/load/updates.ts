/** Containers that live as long as the run, and are updated, stopped and started all the time. */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Random } from '../../actors/support/random.ts';
import type { World } from '../world/world.ts';
import { createPlainClient } from './plain-client.ts';
import { compute, containerIn, fieldsOf, sizes } from './requests.ts';
import { crashingTag, goodTags, missingTag, updatesTenant } from './tenants.ts';

export interface Load {
  /** Lets each client finish its current request. */
  stop(): Promise<void>;
}

const containers = 4;
const pauseMaxMs = 2_500;
/** Between two updates of which the second replaces the first. */
const soonMaxMs = 150;
const tags = [...goodTags, ...goodTags, crashingTag, missingTag] as const;

export function startUpdates(world: World, randomOf: () => Random): Load {
  const stopping = new AbortController();
  const { signal } = stopping;

  const live = async (index: number, random: Random): Promise<void> => {
    const client = await createPlainClient(world, updatesTenant, index);
    const body = {
      name: `u${index}`,
      registry: 'registry.test',
      repository: updatesTenant,
      ...fieldsOf({ tag: goodTags[0], ...random.pick(sizes) }),
    };
    const headers = { 'idempotency-key': `updates-${index}` };
    const created = await client.insist({ method: 'POST', path: compute, body, headers }, signal);
    if (created?.kind !== 'done') return client.close();
    const path = `${compute}/${containerIn(created.body).id}`;
    const update = () =>
      client.send({
        method: 'PATCH',
        path,
        body: fieldsOf({ tag: random.pick(tags), ...(random.once(3) ? random.pick(sizes) : {}) }),
      });
    while (!signal.aborted) {
      await sleep(random.below(pauseMaxMs), signal);
      const dice = random.below(100);
      if (dice < 12) {
        await client.send({ method: 'POST', path: `${path}/stop` });
        await sleep(random.below(pauseMaxMs), signal);
        await client.send({ method: 'POST', path: `${path}/start` });
        continue;
      }
      await update();
      if (dice < 45) {
        await sleep(random.below(soonMaxMs), signal);
        await update();
      }
    }
    client.close();
  };

  const living = Promise.all(Array.from({ length: containers }, (_, index) => live(index, randomOf())));
  // `stop` awaits it and throws.
  living.catch(() => undefined);
  return {
    stop: async () => {
      stopping.abort();
      await living;
    },
  };
}
