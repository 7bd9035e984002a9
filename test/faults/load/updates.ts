/**
 * Containers that live as long as the run, and are updated, stopped and started all the time. Their
 * documents are often near the limits of the API; a record has two of them while an update goes on.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Random } from '../../actors/support/random.ts';
import { commandOf, variablesOf } from '../check/filling.ts';
import type { World } from '../world/world.ts';
import { createPlainClient } from './plain-client.ts';
import { compute, containerIn, documentOf, fieldsOf, sizes } from './requests.ts';
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
  let fillings = 0;

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
    const { id } = containerIn(created.body);
    const path = `${compute}/${id}`;
    const update = () => {
      const tag = random.pick(tags);
      const filling = ++fillings;
      return random.once(2)
        ? client.send({
            method: 'PATCH',
            path: documentOf(id),
            body: { image: { tag }, env: variablesOf(filling), process: { command: commandOf(filling) } },
          })
        : client.send({
            method: 'PATCH',
            path,
            body: fieldsOf({ tag, ...(random.once(3) ? random.pick(sizes) : {}) }),
          });
    };
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
