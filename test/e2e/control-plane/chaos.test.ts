/**
 * Actors, agent and NATS are killed under load. Afterwards every acknowledged write is there, no
 * operation was executed twice, and exactly the desired containers run.
 */
import t from 'tap';
import { sleep } from '../../../lib/time/backoff.ts';
import { checkAcknowledged, work } from '../support/acknowledged.ts';
import { startRig } from '../support/rig.ts';

t.test('killed processes lose no acknowledged write', async (t) => {
  const rig = await startRig(t);
  const operator = await rig.client('ops', 'operator');
  const tenants = ['chaos-a', 'chaos-b', 'chaos-c'];
  for (const tenant of tenants) {
    const caps = { containers: 50, cpu_millis: null, mem_bytes: null };
    t.equal((await operator.call('PUT', `/api/v2/operator/tenants/${tenant}`, { caps })).status, 200);
  }
  const ending = new AbortController();
  const clients = await Promise.all(tenants.map(async (tenant) => rig.client(tenant)));
  const working = Promise.all(
    clients.map(async (client, index) =>
      work(client, { image: rig.image, name: `w${index}`, containers: 6, pauseMs: 100, signal: ending.signal }),
    ),
  );

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

  await checkAcknowledged(
    t,
    rig.engine,
    clients.map((client, index) => ({ client, acknowledged: acknowledged[index] ?? [] })),
  );
});
