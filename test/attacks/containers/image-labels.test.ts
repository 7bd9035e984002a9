/**
 * A tenant runs an image whose labels are 4 MiB long, one of them by the name of a label of ours:
 * the engine repeats them for every container, in every list and event, and in the events of the
 * image. The image must be refused, and an engine that already holds such containers must not hide
 * the others from the agent.
 */
import t from 'tap';
import { v7 } from 'uuid';
import { pushTestImage } from '../../../dev/servers/registry.ts';
import { specHash } from '../../../host-agent/spec/create-body.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { host, type Desire } from '../../host-agent/support/control-plane-state.ts';
import { startRig, steady } from '../../host-agent/support/rig.ts';
import { until } from '../../support/until.ts';
import { containerName, labels, ownerLabels } from '../../../host-agent/docker/ownership.ts';

/**
 * So many containers that their list is larger than what the agent keeps of an answer
 * (`engineAnswerBytes`).
 */
const fromBefore = 3;

t.test('an image with labels of 4 MiB', async (t) => {
  const { controlPlane, engine, registry, agent, script } = await startRig(t);
  const owner = { cluster: controlPlane.cluster, host };
  const cmd = ['sh', '-c', steady];
  const push = async (tag: string, image: object): Promise<Desire & { repository: string }> => {
    const repository = 'longshore/attack-labels';
    await pushTestImage(registry, { repository, tag, cmd, ...image });
    return { registry, repository, tag, cpu_millis: 10 };
  };
  const half = 'x'.repeat(2_080_000);
  const flood = await push('flood', { labels: { flood: half, [labels.path]: half } });
  const reference = `${registry}/${flood.repository}:flood`;
  await engine.call('POST', `/images/create?fromImage=${encodeURIComponent(reference)}`);

  // Containers that were not made as the agent makes them: the engine adds the image's label to the
  // agent's.
  const before = Array.from({ length: fromBefore }, () =>
    controlPlane.desire({ ...flood, id: v7() as ContainerId, desired: 'running' }),
  );
  for (const container of before) {
    const made = await engine.call('POST', `/containers/create?name=${containerName(owner, container.id)}`, {
      Image: reference,
      Labels: {
        ...ownerLabels(owner),
        [labels.tenant]: container.tenant,
        [labels.container]: container.id,
        [labels.placement]: String(container.placement),
        [labels.spec]: specHash(container),
      },
      HostConfig: { NetworkMode: 'none' },
    });
    t.equal(made.status, 201, made.text);
  }
  const [first, second, third] = before.map(({ id }) => id) as [ContainerId, ContainerId, ContainerId];
  const process = agent();
  const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';

  await t.test('the agent still manages containers of that image that exist', async (t) => {
    const plain = controlPlane.desire({ ...(await script('labels-plain', steady)), cpu_millis: 10 });
    await Promise.all([first, second, third, plain.id].map((id) => controlPlane.reported(id, isRunning)));
    controlPlane.desire({ id: first, desired: 'removed' });
    await controlPlane.reported(first, ({ gone }) => gone);
    t.same(await engine.containers(first), []);
  });

  await t.test('the agent receives their events', async (t) => {
    await engine.call('POST', `/containers/${containerName(owner, second)}/kill`);
    const crashed = await controlPlane.reported(second, ({ observation }) => observation.restart_count > 0);
    t.match(crashed.observation.status, /running|starting|backoff/);
    t.notOk(process.lines.some(({ event }) => event === 'engine_events_lost'));
  });

  await t.test('and those of images', async (t) => {
    const ours = await push('ours', { labels: { [labels.tenant]: 'x'.repeat(1_100_000) } });
    const { id } = controlPlane.desire(ours);
    const { observation } = await controlPlane.reported(id, ({ observation: { status } }) => status === 'failed');
    t.match(observation, { reason: 'image_refused', message: /labels/ });
    for (const name of ['other', 'another']) {
      const to = `repo=${encodeURIComponent(`longshore.invalid/${name}`)}`;
      const { status } = await engine.call('POST', `/images/${registry}/${ours.repository}:ours/tag?${to}`);
      t.equal(status, 201);
      await engine.call('DELETE', `/images/longshore.invalid/${name}`);
    }
    await engine.call('POST', `/containers/${containerName(owner, third)}/kill`);
    await controlPlane.reported(third, ({ observation: { restart_count } }) => restart_count > 0);
    t.notOk(process.lines.some(({ event }) => event === 'engine_events_lost'));
  });

  await t.test('a new container of that image is refused, and the message says what to do', async (t) => {
    const { id } = controlPlane.desire(flood);
    const { observation } = await controlPlane.reported(id, ({ observation: { status } }) => status === 'failed');
    t.match(observation, { reason: 'image_refused', message: /labels/ });
    t.same(await engine.containers(id), []);
  });

  await t.test('labels of a usual size are blanked, so lists stay small', async (t) => {
    const size = limits.imageLabelBytes;
    const long = `org.example.${'n'.repeat(300)}`;
    const note = 'x'.repeat(size / 2);
    const small = await push('small', { labels: { note, [long]: 'x', [labels.tenant]: 'stolen' } });
    const { id } = controlPlane.desire(small);
    await controlPlane.reported(id, isRunning);
    t.match((await engine.only(id)).Config.Labels, { note: '', [long]: '', [labels.tenant]: 'acme' });

    const over = controlPlane.desire(await push('over', { labels: { note: 'x'.repeat(size) } }));
    const item = await controlPlane.reported(over.id, ({ observation: { status } }) => status === 'failed');
    t.match(item.observation, { reason: 'image_refused', message: new RegExp(`labels take \\d+ bytes.*${size}`) });

    const name = controlPlane.desire(await push('name', { labels: { ['n'.repeat(limits.imageConfigBytes)]: 'x' } }));
    const refused = await controlPlane.reported(name.id, ({ observation: { status } }) => status === 'failed');
    t.match(refused.observation, { reason: 'image_refused', message: /configuration .* rebuild it/ });
  });

  await t.test('ports, volumes and a command are blanked, too', async (t) => {
    const exposedPorts = Array.from({ length: limits.imagePorts + 1 }, (_, index) => index + 1);
    const volumes = Array.from({ length: limits.imageVolumes + 1 }, (_, index) => `/v${index}`);
    for (const [word, image] of [
      ['ports', { exposedPorts }],
      ['volumes', { volumes }],
      ['command', { cmd: ['sh', '-c', `${steady} # ${'x'.repeat(limits.imageCommandBytes)}`] }],
    ] as const) {
      const { id } = controlPlane.desire(await push(word, image));
      const { observation } = await controlPlane.reported(id, ({ observation: { status } }) => status === 'failed');
      t.match(observation, { reason: 'image_refused', message: new RegExp(word) });
    }
  });

  await until(
    'a heartbeat without the fault that the engine lists nothing',
    () =>
      controlPlane
        .beats()
        .at(-1)
        ?.faults?.every(({ kind }) => kind !== 'engine_degraded') || undefined,
  );
  await process.stop();
});
