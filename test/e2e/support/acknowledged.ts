/** A load that remembers which of its writes were acknowledged, and a check that none was lost. */
import type { Test } from 'tap';
import { labels } from '../../../host-agent/docker/ownership.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { Container } from '../../../schemas/api/container.ts';
import type { EngineView } from '../../host-agent/support/engine.ts';
import type { Client } from './client.ts';
import { eventually } from './eventually.ts';
import type { Rig } from './rig.ts';

type Desired = 'running' | 'stopped' | 'removed';

export interface Acknowledged {
  readonly container: Container;
  desired: Desired;
  /** The state after a write that got no answer: it may or may not have been executed. */
  unsure: Desired | undefined;
}

export interface Load {
  readonly image: Rig['image'];
  /** Prefix of the containers' names. */
  readonly name: string;
  /** The load ends after it has created this many. */
  readonly containers: number;
  /** Pause between two containers. */
  readonly pauseMs: number;
  readonly signal: AbortSignal;
}

/** Creates containers one by one and stops, starts or deletes them, until the load ends. */
export async function work(client: Client, load: Load): Promise<Acknowledged[]> {
  const all: Acknowledged[] = [];
  for (let round = 0; !load.signal.aborted && all.length < load.containers; round++) {
    const name = `${load.name}-${round}`;
    const body = { name, ...load.image, cpu_limit: '0.1', mem_limit: '16m' };
    const created = await client.create(body, { 'idempotency-key': name }).catch(() => undefined);
    if (created?.status !== 201) {
      await sleep(200);
      continue;
    }
    const known: Acknowledged = { container: created.body.data, desired: 'running', unsure: undefined };
    all.push(known);
    for (const next of [['stopped'], ['stopped', 'running'], ['removed'], []][round % 4] as Desired[]) {
      const act = { stopped: client.stop, running: client.start, removed: client.remove }[next];
      const answer = await act(known.container).catch(() => undefined);
      if (answer !== undefined && answer.status < 300) {
        known.desired = next;
        known.unsure = undefined;
      } else known.unsure = next;
    }
    await sleep(load.pauseMs);
  }
  return all;
}

/** Waits until every container is running, stopped or failed, and resolves to the list. */
async function settled(client: Client): Promise<Container[]> {
  const { body } = await eventually(
    'every container at rest',
    async () => client.list(),
    ({ status, body }) =>
      status === 200 && body.data.every((container) => ['running', 'stopped', 'failed'].includes(container.status)),
  );
  return body.data;
}

/**
 * Checks that every acknowledged write is there, that no operation was executed twice, and that
 * exactly the desired containers run.
 */
export async function checkAcknowledged(
  t: Test,
  engine: EngineView,
  tenants: readonly { readonly client: Client; readonly acknowledged: readonly Acknowledged[] }[],
): Promise<void> {
  const running: string[] = [];
  for (const [index, { client, acknowledged }] of tenants.entries()) {
    const listed = new Map((await settled(client)).map((container) => [container.id, container]));
    t.ok(acknowledged.length > 0, `the load of tenant ${index} got acknowledgements`);
    for (const { container, desired, unsure } of acknowledged) {
      const possible: string[] = [desired, ...(unsure === undefined ? [] : [unsure])];
      const actual = listed.get(container.id)?.status ?? 'removed';
      t.ok(possible.includes(actual), `${container.name}: ${actual}, acknowledged ${possible.join(' or ')}`);
    }
    const names = [...listed.values()].map(({ name }) => name);
    t.equal(new Set(names).size, names.length);
    running.push(...[...listed.values()].filter(({ status }) => status === 'running').map(({ id }) => id));
  }
  const actual = await eventually(
    'exactly the desired containers run',
    async () =>
      (await engine.containers())
        .filter(({ State }) => State.Running)
        .map(({ Config }) => String(Config.Labels[labels.container]))
        .sort(),
    (ids) => JSON.stringify(ids) === JSON.stringify([...running].sort()),
  );
  t.equal(new Set(actual).size, actual.length, 'no container runs twice');
}
