/**
 * A tenant's image has a configuration that nobody expects: a health check of megabytes, a thousand
 * checks a second, a check without a command (Docker 20.10 crashes of it), a history of megabytes.
 * The engine repeats it in events that it keeps, and reads it for each list. Neither the engine nor
 * the agent may suffer.
 */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { v7 } from 'uuid';
import { pushTestImage } from '../../../dev/servers/registry.ts';
import { containerName, labels, ownerLabels } from '../../../host-agent/docker/ownership.ts';
import { specHash } from '../../../host-agent/spec/create-body.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { host, type Desire } from '../../host-agent/support/control-plane-state.ts';
import { startRig, steady } from '../../host-agent/support/rig.ts';

t.setTimeout(300_000);
const ms = 1_000_000;
const seconds = 1000 * ms;
const MiB = 1024 * 1024;

t.test('images with a hostile configuration', async (t) => {
  const { controlPlane, engine, registry, agent, script } = await startRig(t);
  const owner = { cluster: controlPlane.cluster, host };
  const push = async (tag: string, image: object): Promise<Desire & { repository: string }> => {
    const repository = 'longshore/attack-config';
    await pushTestImage(registry, { repository, tag, cmd: ['sh', '-c', steady], ...image });
    return { registry, repository, tag, cpu_millis: 10 };
  };
  const check = (Test: readonly string[], more: object = {}) => ({
    members: {
      Healthcheck: { Test, Interval: ms, Timeout: ms, StartPeriod: 1000 * seconds, StartInterval: ms, ...more },
    },
  });
  // `starting`: its check has not succeeded yet, and may never do.
  const isUp = ({ observation }: { observation: { status: string; started_at?: string | null } }) =>
    observation.status === 'running' ||
    (observation.status === 'starting' && typeof observation.started_at === 'string');
  const checkOf = async (id: ContainerId) => {
    const { Config } = (await engine.only(id)) as unknown as { Config: { Healthcheck: object } };
    return Config.Healthcheck;
  };

  // As an agent of an earlier release made it: the image decides its check.
  const flood = await push(
    'flood',
    check(['CMD', '/bin/true', ...Array.from({ length: 20 }, () => 'x'.repeat(60_000))]),
  );
  const reference = `${registry}/${flood.repository}:flood`;
  await engine.call('POST', `/images/create?fromImage=${encodeURIComponent(reference)}`);
  const before = controlPlane.desire({ ...flood, id: v7() as ContainerId, desired: 'running' });
  const name = containerName(owner, before.id);
  const made = await engine.call('POST', `/containers/create?name=${name}`, {
    Image: reference,
    Labels: {
      ...ownerLabels(owner),
      [labels.tenant]: before.tenant,
      [labels.container]: before.id,
      [labels.placement]: String(before.placement),
      [labels.spec]: specHash(before),
    },
    HostConfig: { NetworkMode: 'none' },
  });
  t.equal(made.status, 201, made.text);
  const process = agent();

  await t.test('events of over a megabyte do not blind the agent', async (t) => {
    await controlPlane.reported(before.id, isUp);
    await delay(5000);
    const plain = controlPlane.desire({ ...(await script('config-plain', steady)), cpu_millis: 10 });
    await controlPlane.reported(plain.id, isUp);
    await engine.call('POST', `/containers/${containerName(owner, plain.id)}/kill`);
    await controlPlane.reported(plain.id, ({ observation }) => observation.restart_count > 0);
    t.notOk(process.lines.some(({ event }) => event === 'engine_events_lost'));
    t.equal((await engine.only(before.id)).Id.slice(0, 12), made.text.slice(7, 19), 'and it is not made again');
    controlPlane.desire({ id: before.id, desired: 'removed' });
    await controlPlane.reported(before.id, ({ gone }) => gone);
  });

  await t.test('a configuration beyond the limits is refused, and the message says what', async (t) => {
    const big = 'x'.repeat(MiB + 1);
    const rows: [tag: string, image: object, message: RegExp][] = [
      ['check', check(['CMD', 'x'.repeat(limits.healthCommandBytes)]), /health check takes/],
      ['env', { members: { Env: [`A=${'x'.repeat(limits.imageEnvBytes)}`] } }, /environment takes/],
      ['shell', { members: { Shell: ['sh', 'x'.repeat(limits.imageOtherBytes)] } }, /shell/],
      ['user', { members: { User: 'x'.repeat(limits.imageOtherBytes) } }, /user/],
      ['workdir', { members: { WorkingDir: `/${'x'.repeat(limits.imageOtherBytes)}` } }, /working directory/],
      ['signal', { members: { StopSignal: 'x'.repeat(limits.imageOtherBytes) } }, /user, working/],
      ['onbuild', { members: { OnBuild: ['x'.repeat(limits.imageOtherBytes)] } }, /ONBUILD/],
      ['author', { beside: { author: big } }, /configuration or history/],
      ['history', { beside: { history: [{ created: '1970-01-01T00:00:00Z', created_by: big }] } }, /history/],
      // The engine never tells it, but reads it each time.
      ['unheard', { beside: { unheard: big } }, /configuration or history/],
    ];
    for (const [tag, image, message] of rows) {
      const { id } = controlPlane.desire(await push(tag, image));
      const { observation } = await controlPlane.reported(id, ({ observation: { status } }) => status === 'failed');
      t.match(observation, { reason: 'image_refused', message }, tag);
      t.same(await engine.containers(id), [], tag);
    }
  });

  await t.test('a thousand checks a second become one', async (t) => {
    const { id } = controlPlane.desire(await push('often', check(['CMD-SHELL', 'echo x >> /tmp/checks'])));
    await controlPlane.reported(id, isUp);
    t.match(await checkOf(id), { Interval: seconds, Timeout: seconds });
    const checks = async () => (await engine.exec(id, ['cat', '/tmp/checks'])).match(/x/g)?.length ?? 0;
    await delay(3000);
    const [first, startedMs] = [await checks(), performance.now()];
    await delay(5000);
    const took = (performance.now() - startedMs) / 1000;
    const [last] = [await checks()];
    t.ok(last - first <= took + 2, `${last - first} checks in ${took} s`);
  });

  await t.test('checks that never end are few processes at a time', async (t) => {
    const hanging = check(['CMD-SHELL', "trap '' TERM INT; while :; do sleep 1; done"]);
    const { id } = controlPlane.desire(await push('hanging', hanging));
    await controlPlane.reported(id, isUp);
    await delay(15_000);
    const { text } = await engine.call('GET', `/containers/${containerName(owner, id)}/top`);
    const { Processes } = JSON.parse(text) as { Processes: string[][] };
    t.ok(Processes.length < 40, `${Processes.length} processes`);
  });

  await t.test('a check without a command, and one of negative times, are none that harms', async (t) => {
    for (const [tag, image, expected] of [
      ['empty', check(['CMD']), { Test: ['NONE'] }],
      ['shell-empty', check(['CMD-SHELL']), { Test: ['NONE'] }],
      ['unknown', check(['UNHEARD', 'x']), { Test: ['NONE'] }],
      [
        'negative',
        check(['CMD', 'true'], { Interval: -5, Timeout: -5, Retries: -5 }),
        { Interval: seconds, Retries: 1 },
      ],
    ] as const) {
      const { id } = controlPlane.desire(await push(tag, image));
      await controlPlane.reported(id, isUp);
      t.match(await checkOf(id), expected, tag);
    }
    await delay(2000);
    t.equal((await engine.call('GET', '/_ping')).status, 200, 'the engine lives');
  });

  t.notOk(process.lines.some(({ event }) => event === 'engine_away'));
  await process.stop();
});
