/** Current use of containers over HTTP, against the engine's own numbers (ADR 39). */
import t, { type Test } from 'tap';
import { memoryIn } from '../../../host-agent/docker/answers.ts';
import type { Container } from '../../../schemas/api/container.ts';
import type { ContainerStats } from '../../../schemas/api/usage/stats.ts';
import { holdToComponent } from '../../support/http/api-answers.ts';
import { listen } from '../../support/http/event-stream.ts';
import { engineStats, notCompared } from '../support/engine-stats.ts';
import { eventually } from '../support/eventually.ts';
import { imageRunning } from '../support/images.ts';
import type { Rig } from '../support/rig.ts';
import { sharedStack } from '../support/stack.ts';
import type { Client } from '../support/client.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const MiB = 1024 * 1024;
const small = { cpu_limit: '0.5', mem_limit: '64m' };
const of = ({ id }: { readonly id: string }): string => `${compute}/${id}/stats`;

const statsOf = async (client: Client, container: Container) =>
  client.call<{ data: ContainerStats }>('GET', of(container));

/** A stream of samples; each is as the document says. */
async function follow(t: Test, { baseUrl }: Rig, { token }: Client, container: Container) {
  const stream = await listen(t, `${baseUrl}${of(container)}?follow=true`, { authorization: `Bearer ${token}` });
  const samples = (): ContainerStats[] => {
    const all = stream.frames.filter(({ event }) => event === 'stats').map(({ data }) => data as ContainerStats);
    for (const sample of all) holdToComponent('ContainerStats', sample);
    return all;
  };
  return {
    ...stream,
    samples,
    /** Resolves when so many more have come. */
    more: async (count: number): Promise<void> => {
      const before = samples().length;
      await eventually(
        `${count} more samples`,
        () => Promise.resolve(samples().length),
        (now) => now >= before + count,
      );
    },
    end: (): unknown => stream.frames.find(({ event }) => event === 'end')?.data,
  };
}

const series = async ({ metricsUrls }: Rig, { id }: Container): Promise<string[]> =>
  (await (await fetch(metricsUrls['host-agent'])).text()).split('\n').filter((line) => line.includes(id));

async function openSessions({ metricsUrls }: Rig): Promise<number> {
  const count = async (url: string): Promise<number> =>
    Number(/^longshore_(?:gateway|agent)_tunnels (\d+)/m.exec(await (await fetch(url)).text())?.[1]);
  return (await count(metricsUrls.gateway)) + (await count(metricsUrls['host-agent']));
}

t.test('stats', async (t) => {
  const rig = await sharedStack(t);
  const own = rig.tenant('acme');
  const acme = await rig.client(own);
  // The kernel counts memory by batches of pages: what a small shell uses may be anything.
  const hold = `held=$(head -c ${4 * MiB} /dev/zero | tr "\\0" x)`;
  const burning = await imageRunning(rig, `${hold}; trap "exit 0" TERM; while :; do :; done`);
  const [web, burner] = await acme.createRunning([
    { name: 'web', ...rig.image, ...small, ports: ['8080/tcp'] },
    { name: 'burner', ...burning, ...small },
  ]);
  if (web === undefined || burner === undefined) throw new Error('they do not run');
  const none = (): Promise<number> =>
    eventually(
      'no session is open',
      () => openSessions(rig),
      (count) => count === 0,
    );

  await t.test('one answer: what the engine says too', async (t) => {
    const both = async () => {
      const [{ status, body }, engine] = await Promise.all([statsOf(acme, burner), engineStats(rig, burner.id)]);
      return { status, data: body.data, engine };
    };
    const { status, data, engine } = await eventually(
      'it holds its memory, and both say so',
      both,
      ({ data, engine }) =>
        data.mem_bytes > 4 * MiB &&
        data.pids === 1 &&
        (engine === undefined ||
          (Math.abs(data.mem_bytes - memoryIn(engine)) < 2 * MiB && data.pids === engine.pids_stats?.current)),
    );
    if (engine === undefined) t.comment(notCompared);
    t.equal(status, 200);
    t.equal(data.mem_limit, 64 * MiB);
    t.ok(data.cpu_millis > 50 && data.cpu_millis < 1000, `half a core, at most: ${data.cpu_millis}`);
    t.ok(Math.abs(Date.parse(data.at) - Date.now()) < 60_000);
    await none();
  });

  await t.test('a stream: once a second, with the traffic of the container', async (t) => {
    const stream = await follow(t, rig, acme, web);
    t.equal(stream.response.headers.get('content-type'), 'text/event-stream');
    await stream.more(2);
    const [port] = (await acme.status(web)).body.data.addresses;
    if (port === undefined) throw new Error('no address');
    const received = stream.samples().at(-1)?.net_rx_bytes ?? Infinity;
    await fetch(`http://${port.address}/`);
    await eventually(
      'the request was counted',
      () => Promise.resolve(stream.samples().at(-1)),
      (sample) => (sample?.net_rx_bytes ?? 0) > received && (sample?.net_tx_bytes ?? 0) > 0,
    );
    await stream.more(3);
    const times = stream.samples().map(({ at }) => Date.parse(at));
    t.same(times, times.toSorted(), 'in order');
    t.equal(new Set(times).size, times.length, 'each once');
    t.equal(await openSessions(rig), 2, 'one at each end');
    const others = await Promise.all(Array.from({ length: 3 }, () => follow(t, rig, acme, web)));
    await Promise.all(others.map(({ more }) => more(1)));
    t.equal(await openSessions(rig), 2, 'shared by all who watch');
    for (const { leave } of [stream, ...others]) leave();
    await none();
  });

  await t.test('metrics of each container, while it runs', async (t) => {
    const names = await eventually(
      'the burner has its series',
      async () => (await series(rig, burner)).map((line) => line.slice(0, line.indexOf('{'))).sort(),
      (found) => found.length === 6,
    );
    t.match(names[0], /^longshore_agent_container_cpu_seconds_total$/);
    t.ok((await series(rig, burner)).every((line) => line.includes(`tenant="${own}"`)));
    t.equal((await series(rig, web)).length, 6);
  });

  await t.test('a stream waits while its container is stopped, and ends when it is gone', async (t) => {
    const stream = await follow(t, rig, acme, burner);
    await stream.more(1);
    await acme.stop(burner);
    await acme.wait(burner, 'stopped');
    const refused = await statsOf(acme, burner);
    t.equal(refused.status, 409);
    t.match(refused.text, /does not run/);
    t.equal(
      (await fetch(`${rig.baseUrl}${of(burner)}?follow=true`, { headers: { authorization: `Bearer ${acme.token}` } }))
        .status,
      409,
    );
    await eventually(
      'its series are gone',
      () => series(rig, burner),
      (left) => left.length === 0,
    );
    t.equal(stream.end(), undefined);
    await acme.start(burner);
    await stream.more(2);
    await acme.remove(burner);
    await eventually(
      'the end',
      () => Promise.resolve(stream.end()),
      (end) => end !== undefined,
    );
    t.same(stream.end(), { reason: 'done' });
    t.equal((await statsOf(acme, burner)).status, 404);
    await none();
  });

  await t.test('a stream goes on over a kill of the agent, and of the gateway’s connection', async (t) => {
    const stream = await follow(t, rig, acme, web);
    await stream.more(1);
    await rig.agent.kill9();
    await rig.agent.start();
    await stream.more(2);
    await rig.nats.restart();
    await stream.more(2);
    t.equal(stream.end(), undefined);
    stream.leave();
    await none();
  });

  await t.test('another tenant sees nothing; a revoked token sees no more', async (t) => {
    const mallory = await rig.client(rig.tenant('mallory'));
    t.equal((await statsOf(mallory, web)).status, 404);
    t.equal((await acme.call('GET', `${of(web)}?follow=perhaps`)).status, 422);
    const stream = await follow(t, rig, acme, web);
    await stream.more(1);
    const operator = await rig.client('ops', 'operator');
    t.equal((await operator.call('POST', `/api/v2/operator/tenants/${own}/revocations`, {})).status, 201);
    await eventually(
      'the end',
      () => Promise.resolve(stream.end()),
      (end) => end !== undefined,
    );
    t.same(stream.end(), { reason: 'unauthenticated' });
    await none();
  });
});
