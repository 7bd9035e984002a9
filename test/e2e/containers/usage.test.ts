/**
 * Past use of containers over HTTP, on real servers and programs, against the engine's own counters
 * (ADR 40).
 */
import t from 'tap';
import type { Stats } from '../../../host-agent/docker/answers.ts';
import type { UsageView } from '../../../schemas/api/usage/usage.ts';
import type { Client } from '../support/client.ts';
import { engineStats, notCompared } from '../support/engine-stats.ts';
import { eventually } from '../support/eventually.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(300_000);
const usagePath = '/api/v2/compute/usage';

/** Works for a while, and then uses nothing more: its counter stands still. */
const burning =
  'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done';

interface Answer {
  readonly data: UsageView;
  readonly next_cursor?: string;
}
const usage = async (client: Client, query = '') => (await client.call<Answer>('GET', `${usagePath}${query}`)).body;
const rowOf = async (client: Client, { id }: { id: string }) =>
  (await usage(client)).data.containers.find((row) => row.id === id);

/** CPU time by the engine, in whole milliseconds. */
const secondsIn = ({ cpu_stats }: Stats): number => Math.floor(cpu_stats.cpu_usage.total_usage / 1e6) / 1000;

t.test('usage', async (t) => {
  const rig = await sharedStack(t);
  const acme = await rig.client(rig.tenant('acme'));
  const image = await imageRunning(rig, burning);
  const [burner] = await acme.createRunning([{ name: 'burner', ...image, cpu_limit: '0.5', mem_limit: '16m' }]);
  if (burner === undefined) throw new Error('it does not run');

  await t.test('CPU time is the engine’s, while agent and actors are killed', async (t) => {
    await eventually(
      'some usage',
      () => rowOf(acme, burner),
      (row) => (row?.cpu_seconds ?? 0) > 0,
    );
    await rig.agent.kill9();
    await rig.actors.kill9();
    await rig.actors.start();
    await rig.agent.start();
    const { row, engine } = await eventually(
      'what it burnt, and as much as the engine says',
      async () => ({ row: await rowOf(acme, burner), engine: await engineStats(rig, burner.id) }),
      ({ row, engine }) =>
        row !== undefined && row.cpu_seconds > 0.05 && (engine === undefined || row.cpu_seconds === secondsIn(engine)),
    );
    if (engine === undefined) t.comment(notCompared);
    t.match(row, { name: 'burner' });
    t.ok(BigInt(row?.mem_byte_seconds ?? 0) > 0n);
  });

  await t.test('container-seconds are those of the run', async (t) => {
    const startedMs = Date.parse((await rig.engine.only(burner.id)).State.StartedAt);
    await acme.call('POST', `/api/v2/compute/${burner.id}/stop`);
    t.equal((await acme.wait(burner, 'stopped')).status, 200);
    const stoppedMs = Date.now();
    const { State } = JSON.parse(
      (await rig.engine.call('GET', `/containers/${(await rig.engine.only(burner.id)).Id}/json`)).text,
    ) as {
      State: { FinishedAt: string };
    };
    const ranMs = Date.parse(State.FinishedAt) - startedMs;
    await eventually(
      'the end of the run',
      () => rowOf(acme, burner),
      (ended) => (ended?.container_seconds ?? 0) * 1000 >= ranMs,
    );
    const [again] = await acme.createRunning([{ name: 'again', ...image, cpu_limit: '0.5', mem_limit: '16m' }]);
    const grows = async () => {
      const before = again === undefined ? undefined : await rowOf(acme, again);
      await eventually(
        'the other runs on',
        () => rowOf(acme, again ?? burner),
        (other) => (other?.container_seconds ?? 0) > (before?.container_seconds ?? 0),
      );
    };
    // Its report comes after the one of the end.
    await grows();
    const row = await rowOf(acme, burner);
    t.ok((row?.container_seconds ?? Infinity) * 1000 <= stoppedMs - startedMs);
    await rig.agent.kill9();
    await rig.agent.start();
    await grows();
    t.same(await rowOf(acme, burner), row, 'a restart of the agent counts nothing again');
  });

  await t.test('a page at a time, with the total of all', async (t) => {
    const first = await usage(acme, '?limit=1');
    t.equal(first.data.containers.length, 1);
    const second = await usage(acme, `?limit=1&cursor=${first.next_cursor ?? ''}`);
    t.equal(second.next_cursor, undefined);
    t.same([first, second].map(({ data }) => data.containers[0]?.name).sort(), ['again', 'burner']);
    const all = await usage(acme);
    const sum = all.data.containers.reduce((seconds, row) => seconds + Math.round(row.container_seconds * 1000), 0);
    t.equal(Math.round(all.data.total.container_seconds * 1000), sum);
  });

  await t.test('a removed container stays, with its name', async (t) => {
    await acme.call('DELETE', `/api/v2/compute/${burner.id}`);
    await eventually(
      'it is gone',
      () => acme.get(burner),
      ({ status }) => status === 404,
    );
    t.match(await rowOf(acme, burner), { name: 'burner' });
  });

  await t.test('another tenant sees none of it, and a wrong question all of its faults', async (t) => {
    const mallory = await rig.client(rig.tenant('mallory'));
    for (const query of ['', '?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z']) {
      t.match(await usage(mallory, query), { data: { total: { container_seconds: 0 }, containers: [] } });
    }
    const asAcme = await mallory.call('GET', `${usagePath}?tenant=${rig.tenant('acme')}`);
    t.match(asAcme, { status: 422, body: { details: { tenant: [/./] } } });
    const wrong = await acme.call<{ details: object }>('GET', `${usagePath}?from=yesterday&to=2026-13-01T00:00:00Z`);
    t.equal(wrong.status, 422);
    t.same(Object.keys(wrong.body.details), ['from', 'to']);
    t.equal((await acme.call('GET', `${usagePath}?cursor=!`)).status, 422);
    t.equal((await acme.call('GET', `${usagePath}?from=2026-01-01T00:00:00Z&to=2026-03-01T00:00:00Z`)).status, 422);
  });
});
