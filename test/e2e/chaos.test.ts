/**
 * kill -9 of actors, agent and NATS under load: every acknowledged write is there afterwards, nothing was done twice, and
 * the containers that run are exactly those that are desired.
 */
import t from 'tap';
import type { Container } from '../../schemas/container.ts';
import { sleep } from '../../lib/backoff.ts';
import { labels } from '../../host-agent/observed.ts';
import { eventually, startRig, type Client, type Rig } from './rig.ts';

interface Acknowledged {
  readonly container: Container;
  desired: 'running' | 'stopped' | 'removed';
  /** A write without an answer: either side of it may be true. */
  unsure: Acknowledged['desired'] | undefined;
}

/** Creates, stops, starts and deletes one after the other, until told to end; keeps what was acknowledged. */
async function work(client: Client, rig: Rig, name: string, signal: AbortSignal): Promise<Acknowledged[]> {
  const all: Acknowledged[] = [];
  for (let round = 0; !signal.aborted && all.length < 6; round++) {
    const body = { name: `${name}-${round}`, ...rig.image, cpu_limit: '0.1', mem_limit: '16m' };
    const created = await client.create(body, { 'idempotency-key': `${name}-${round}` }).catch(() => undefined);
    if (created?.status !== 201) {
      await sleep(200);
      continue;
    }
    const known: Acknowledged = { container: created.body.data, desired: 'running', unsure: undefined };
    all.push(known);
    for (const next of [['stopped'], ['stopped', 'running'], ['removed'], []][round % 4] as Acknowledged['desired'][]) {
      const act = { stopped: client.stop, running: client.start, removed: client.remove }[next];
      const answer = await act(known.container).catch(() => undefined);
      if (answer !== undefined && answer.status < 300) {
        known.desired = next;
        known.unsure = undefined;
      } else known.unsure = next;
    }
    await sleep(100);
  }
  return all;
}

/** What the control plane says that there should be, once nothing changes any more. */
async function settled(client: Client): Promise<Container[]> {
  const { body } = await eventually(
    'every container at rest',
    async () => client.list(),
    ({ status, body }) =>
      status === 200 && body.data.every((container) => ['running', 'stopped', 'failed'].includes(container.status)),
    120_000,
  );
  return body.data;
}

t.test('processes are killed under load', async (t) => {
  const rig = await startRig(t);
  const operator = await rig.client('ops', 'operator');
  const tenants = ['chaos-a', 'chaos-b', 'chaos-c'];
  for (const tenant of tenants) {
    const caps = { containers: 50, cpu_millis: null, mem_bytes: null };
    t.equal((await operator.call('PUT', `/api/v2/operator/tenants/${tenant}`, { caps })).status, 200);
  }
  const ending = new AbortController();
  const clients = await Promise.all(tenants.map(async (tenant) => rig.client(tenant)));
  const working = Promise.all(clients.map(async (client, index) => work(client, rig, `w${index}`, ending.signal)));

  for (const victim of [rig.actors, rig.agent, rig.actors]) {
    await sleep(1500);
    await victim.kill9();
    await sleep(500);
    await victim.start();
  }
  await rig.nats.kill9();
  await sleep(500);
  await rig.nats.restart();
  await sleep(2000);
  await rig.agent.kill9();
  await rig.agent.start();
  const acknowledged = await working;
  ending.abort();

  const running: string[] = [];
  for (const [index, client] of clients.entries()) {
    const listed = new Map((await settled(client)).map((container) => [container.id, container]));
    const known = acknowledged[index] ?? [];
    t.ok(known.length > 0, `worker ${index} had answers`);
    for (const { container, desired, unsure } of known) {
      const now = listed.get(container.id);
      const possible = [desired, ...(unsure === undefined ? [] : [unsure])];
      const actual = now === undefined ? 'removed' : now.status;
      t.ok(
        possible.includes(actual as Acknowledged['desired']),
        `${container.name}: ${actual}, acknowledged ${possible.join(' or ')}`,
      );
    }
    const names = [...listed.values()].map(({ name }) => name);
    t.equal(new Set(names).size, names.length);
    running.push(...[...listed.values()].filter(({ status }) => status === 'running').map(({ id }) => id));
  }
  const actual = await eventually(
    'exactly the desired containers run',
    async () =>
      (await rig.engine.containers())
        .filter(({ State }) => State.Running)
        .map(({ Config }) => String(Config.Labels[labels.container]))
        .sort(),
    (ids) => JSON.stringify(ids) === JSON.stringify([...running].sort()),
  );
  t.equal(new Set(actual).size, actual.length, 'none runs twice');
});
