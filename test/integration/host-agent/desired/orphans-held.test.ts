import t from 'tap';
import { host } from '../../../host-agent/support/control-plane-state.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';
import { labels } from '../../../../host-agent/docker/ownership.ts';

t.test('containers given away go, unknown ones are held, those of others stay', async (t) => {
  const { controlPlane, engine, agent, script, registry } = await startRig(t);
  const image = await script('steady', steady);
  const process = agent();
  const declared = controlPlane.desireAll(
    Array.from({ length: 9 }, (_, index) => ({ ...image, tenant: index < 3 ? `t${index}` : 'lost' })),
  );
  await Promise.all(
    declared.map(({ id }) => controlPlane.reported(id, ({ observation }) => observation.status === 'running')),
  );
  const ids = declared.map(({ id }) => id);

  const reference = `${registry}/${image.repository}:${image.tag}`;
  const foreign = async (name: string, marks: Record<string, string>): Promise<string> => {
    const path = `/containers/create?name=${name}-${controlPlane.cluster}`;
    const { text } = await engine.call('POST', path, {
      Image: reference,
      Labels: marks,
      HostConfig: { NetworkMode: 'none' },
    });
    const { Id } = JSON.parse(text) as { Id: string };
    t.teardown(() => engine.call('DELETE', `/containers/${Id}?force=1`));
    await engine.call('POST', `/containers/${Id}/start`);
    return Id;
  };
  const strangers = await Promise.all([
    foreign('unlabelled', {}),
    foreign('of-another-host', {
      [labels.cluster]: controlPlane.cluster,
      [labels.host]: 'h2',
      [labels.container]: ids[0] ?? '',
    }),
    foreign('of-another-cluster', { [labels.cluster]: 'other', [labels.host]: host, [labels.container]: ids[0] ?? '' }),
  ]);
  const here = async (): Promise<number> =>
    (await engine.containers()).filter(({ Config }) => Config.Labels[labels.host] === host).length;

  await t.test('containers placed elsewhere go at once, even if they are most of the host’s', async (t) => {
    const small = { ...image, tenant: 't1', cpu_millis: 10, mem_bytes: 8 * 1024 ** 2 };
    const moved = controlPlane.desireAll(Array.from({ length: 6 }, () => small));
    await Promise.all(
      moved.map(({ id }) => controlPlane.reported(id, ({ observation }) => observation.status === 'running')),
    );
    controlPlane.drop(...ids.slice(0, 2), ...moved.map(({ id }) => id));
    await until('eight less', async () => (await here()) === 7 || undefined);
    t.equal(controlPlane.beats().at(-1)?.orphans_held, 0);
    t.same(
      await engine.containers(ids[0]).then((each) => each.filter(({ Config }) => Config.Labels[labels.host] === host)),
      [],
    );
  });

  await t.test('the container of a damaged record stays as it is', async (t) => {
    const [, , damaged] = ids;
    if (damaged === undefined) throw new Error('no third');
    controlPlane.hold(damaged);
    const { Id } = await engine.only(damaged);
    await engine.call('POST', `/containers/${Id}/kill`);
    const beats = controlPlane.beats().length;
    await until('some time', () => controlPlane.beats().length > beats + 10 || undefined);
    t.match((await engine.only(damaged)).State, { Running: false });
  });

  await t.test('containers that the control plane does not know wait for an operator’s approval', async (t) => {
    controlPlane.lose(...ids.slice(3, 4));
    await until('one held', () => controlPlane.beats().at(-1)?.orphans_held === 1 || undefined);
    controlPlane.lose(...ids.slice(4));
    await until('six held', () => controlPlane.beats().at(-1)?.orphans_held === 6 || undefined);
    t.equal(await here(), 7);
    t.match(await process.metrics(), /longshore_agent_orphans_held 6/);
  });

  await t.test('also after a restart of the agent', async (t) => {
    t.equal(await process.stop(), 0);
    const second = agent();
    await second.logged('orphans_held', ({ orphans }) => orphans === 6);
    t.equal(await here(), 7);
  });

  await t.test('after the approval they go', async (t) => {
    controlPlane.setOrphanApprovals(1);
    await until('only the damaged one left', async () => (await here()) === 1 || undefined);
    await until('none held', () => controlPlane.beats().at(-1)?.orphans_held === 0 || undefined);
    t.same(controlPlane.faults(), []);
  });

  for (const id of strangers) {
    const { text } = await engine.call('GET', `/containers/${id}/json`);
    t.match(JSON.parse(text), { State: { Running: true } }, 'a container of others keeps running');
  }
});

t.test('the agent refuses a control plane of another cluster, and touches nothing', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const process = agent();
  const { id } = controlPlane.desire(await script('steady', steady));
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  const before = await engine.only(id);
  controlPlane.impersonate('another');
  controlPlane.drop(id);
  await process.logged('sync_refused', ({ kind }) => kind === 'foreign_cluster');
  t.equal((await engine.only(id)).State.StartedAt, before.State.StartedAt);
  await process.stop();
  const second = agent();
  await second.logged('hello_refused');
  t.match((await engine.only(id)).State, { StartedAt: before.State.StartedAt, Running: true });
});

t.test('an incomplete set, or one from disk alone, makes no orphans', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const first = agent();
  const { id } = controlPlane.desire(await script('steady', steady));
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  await first.stop();
  controlPlane.goAway();
  controlPlane.drop(id);
  const { unlinkSync, readdirSync } = await import('node:fs');
  const { join } = await import('node:path');
  const folder = join(first.stateDir, 'desired');
  for (const name of readdirSync(folder)) if (name !== 'cluster.json') unlinkSync(join(folder, name));
  const second = agent();
  await second.logged('engine_up');
  const syncs = () =>
    second.metrics().then((text) => Number(/syncs_total\{result="silent"\} (\d+)/.exec(text)?.[1] ?? 0));
  await until('several questions without an answer', async () => (await syncs()) > 5 || undefined);
  t.equal((await engine.only(id)).State.Running, true);
  await controlPlane.comeBack();
  await until('the orphan goes', async () => (await engine.containers(id)).length === 0 || undefined);
});
