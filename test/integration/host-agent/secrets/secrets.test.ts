/** Secrets in containers of a real engine, and where their values are not (ADR 38). */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import { pushTestImage } from '../../../../dev/servers/registry.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { credentialsOfCp } from '../../../support/host-user.ts';
import { until } from '../../../support/until.ts';
import type { Desire } from '../../../host-agent/support/control-plane-state.ts';
import { mountSmall, skipWithoutMounts } from '../../../host-agent/support/disk.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';

t.setTimeout(300_000);
const tenant = 'acme';
const file = (name: string, version = 1, more: object = {}) => ({
  name,
  version,
  mode: 0o400,
  uid: 0,
  gid: 0,
  ...more,
});

/** Folders of the test's own tmpfs. */
const foldersOn = (root: string): string[] =>
  readdirSync(root).flatMap((home) => readdirSync(join(root, home)).map((name) => join(root, home, name)));

async function secretRig(t: Test) {
  const rig = await startRig(t);
  const root = join(temporaryFolder(t), 'tmpfs');
  mountSmall(t, root, 16);
  const image: Desire = { ...(await rig.script('secrets', steady)), tenant };
  const start = () => rig.agent({ SECRET_FILES_DIR: root, UPDATE_VERIFY: '1s' });
  const running = (id: ContainerId) =>
    rig.controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  return { ...rig, root, image, start, running, vault: rig.controlPlane.vault };
}

t.test('secrets', { skip: skipWithoutMounts }, async (t) => {
  const { controlPlane, vault, engine, root, image, start, running, registry } = await secretRig(t);
  let agent = start();
  const values = { env: 'env-value-Kq83', file: 'file-value-Zx71', other: 'other-value-Wm25' };
  vault.setSecret(tenant, 'env', 1, values.env);
  vault.setSecret(tenant, 'file', 1, values.file);
  vault.setSecret(tenant, 'other', 1, values.other);
  const messages: string[] = [];
  const { credsFile, url } = controlPlane.nats;
  const listener = await connect({ servers: url, authenticator: credsAuthenticator(await credentialsOfCp(credsFile)) });
  t.teardown(() => listener.close());
  listener.subscribe('>', { callback: (_, { data }) => void messages.push(Buffer.from(data).toString('latin1')) });
  await listener.flush();
  const secrets = {
    env: { TOKEN: { name: 'env', version: 1 } },
    files: { '/run/secret/a': file('file'), '/run/secret/b': file('other', 1, { mode: 0o440, uid: 65534, gid: 7 }) },
  };
  const { id } = controlPlane.desire({ ...image, secrets });
  await running(id);
  const sh = (script: string) => engine.exec(id, ['sh', '-c', script]);

  await t.test('a container has its values, with the mode and the owner of each file', async (t) => {
    t.match(await sh('echo $TOKEN'), values.env);
    t.match(await sh('cat /run/secret/a; echo; cat /run/secret/b'), new RegExp(`${values.file}\\s+${values.other}`));
    t.match(await sh('ls -ln /run/secret'), /-r--------.* 0 +0 .*a\s+-r--r-----.* 65534 +7 .*b/);
  });

  await t.test('files are read-only, even for root, and are not on a disk', async (t) => {
    const written = await sh('echo x > /run/secret/a; rm -f /run/secret/a; chmod 777 /run/secret/a; cat /run/secret/a');
    t.match(written, values.file);
    t.match(written, /Read-only file system/);
    t.match(await sh('cat /proc/mounts'), /tmpfs \/run\/secret\/a tmpfs ro/);
  });

  await t.test('nowhere else are the values', async (t) => {
    const { DockerRootDir } = JSON.parse((await engine.call('GET', '/info')).text) as { DockerRootDir: string };
    const { Id } = await engine.only(id);
    const inspected = JSON.stringify(await engine.only(id));
    for (const value of [values.file, values.other]) t.notMatch(inspected, value, 'no file in docker inspect');
    const elsewhere = [JSON.stringify([agent.lines, controlPlane.reports()]), await agent.metrics(), ...messages];
    const filesWith = (value: string, folder: string): string[] => {
      try {
        return execFileSync('grep', ['-rlaF', '--', value, folder], { encoding: 'utf8' }).trim().split('\n');
      } catch {
        return [];
      }
    };
    for (const value of Object.values(values)) {
      const encoded = Buffer.from(value).toString('base64');
      t.notOk(
        elsewhere.some((text) => text.includes(value) || text.includes(encoded)),
        'in a log, a report, a message',
      );
      t.same(filesWith(value, agent.stateDir), [], 'in the state folder of the agent');
      t.same(filesWith(encoded, agent.stateDir), []);
    }
    t.ok(messages.length > 0 && vault.boxes().length === 3);
    const configuration = filesWith(values.env, join(DockerRootDir, 'containers'));
    t.ok(
      configuration.length > 0 && configuration.every((path) => path.includes(Id)),
      'the engine keeps the environment',
    );
    for (const value of [values.file, values.other]) t.same(filesWith(value, DockerRootDir), []);
  });

  await t.test('after a reboot without a control plane, from the sealed values on disk', async (t) => {
    const asked = vault.asks().length;
    vault.play('silent');
    await agent.kill9();
    const { Id } = await engine.only(id);
    await engine.call('POST', `/containers/${Id}/kill`);
    execFileSync('rm', ['-rf', ...readdirSync(root).map((name) => join(root, name))]);
    agent = start();
    await until(
      () => 'the container to run again',
      async () => ((await engine.only(id)).State.Running ? true : undefined),
    );
    t.match(await sh('cat /run/secret/a'), values.file);
    t.equal(vault.asks().length, asked, 'nothing was asked for');
    vault.play('open');
  });

  await t.test('a secret that is not there is named, and waited for', async (t) => {
    vault.play('unavailable');
    const waiting = controlPlane.desire({ ...image, secrets: { env: {}, files: { '/x': file('late') } } });
    const { observation } = await controlPlane.reported(
      waiting.id,
      ({ observation: { status } }) => status === 'backoff',
    );
    t.match(observation, { reason: 'secret_missing', message: /"late" is missing: the vault is closed/ });
    vault.play('open');
    const refused = await controlPlane.reported(waiting.id, ({ observation: { message } }) =>
      /no such/.test(message ?? ''),
    );
    t.match(refused.observation, { status: 'backoff', reason: 'secret_missing' });
    vault.setSecret(tenant, 'late', 1, 'late-value');
    await running(waiting.id);
    controlPlane.desire({ id: waiting.id, desired: 'removed' });
    await controlPlane.reported(waiting.id, ({ gone }) => gone);
    await until(
      () => 'its folder to go',
      () => foldersOn(root).every((path) => !path.includes(waiting.id)) || undefined,
    );
  });

  await t.test('another value is an update, and both versions have their files until it has ended', async (t) => {
    vault.setSecret(tenant, 'file', 2, 'second-value-Hh44');
    controlPlane.update(id, { secrets: { env: secrets.env, files: { '/run/secret/a': file('file', 2) } } });
    await controlPlane.reported(id, ({ update }) => update?.phase === 'verifying');
    t.equal(foldersOn(root).length, 2);
    t.match(await engine.exec(id, ['cat', '/run/secret/a']).catch(() => 'second-value-Hh44'), 'second-value-Hh44');
    await controlPlane.reported(id, ({ update }) => update?.phase === 'done', 120_000);
    controlPlane.settle(id);
    await until(
      () => `the files of the old version to go: ${foldersOn(root).join()}`,
      () => foldersOn(root).length === 1 || undefined,
    );
  });

  await t.test('a link in the image leads no mount out of the container', async (t) => {
    const target = temporaryFolder(t);
    const up = '../'.repeat(20);
    await pushTestImage(registry, {
      repository: 'longshore/links',
      tag: '1',
      cmd: ['sh', '-c', steady],
      files: [
        { kind: 'link', path: 'out', target: target },
        { kind: 'link', path: 'up', target: `${up}${target.slice(1)}` },
        { kind: 'link', path: 'leaf', target: join(target, 'leaf') },
      ],
    });
    const files = { '/out/a': file('file'), '/up/b': file('file'), '/leaf': file('file') };
    const links = { registry, repository: 'longshore/links', tag: '1', tenant, secrets: { env: {}, files } };
    const { id: linked } = controlPlane.desire(links);
    await running(linked);
    t.same(readdirSync(target), [], 'nothing on the host');
    for (const path of ['/out/a', '/up/b', '/leaf'])
      t.match(await engine.exec(linked, ['cat', path]), values.file, path);
    controlPlane.desire({ id: linked, desired: 'removed' });
    await controlPlane.reported(linked, ({ gone }) => gone);
  });

  await t.test(
    'an agent that is killed between any two steps leaves nothing half made, and nothing behind',
    async (t) => {
      const files = { '/run/secret/a': file('file'), '/run/secret/b': file('slow') };
      const made: ContainerId[] = [];
      for (const step of ['pull', 'create', 'start', 'backoff']) {
        const { id: each } = controlPlane.desire({
          ...image,
          tenant: `${tenant}-${step}`,
          secrets: { env: {}, files },
        });
        made.push(each);
        for (const [name, value] of [
          ['file', values.file],
          ['slow', step === 'backoff' ? null : values.other],
        ] as const)
          vault.setSecret(`${tenant}-${step}`, name, 1, value);
        // The first file is there and the second is not.
        if (step === 'backoff')
          await controlPlane.reported(each, ({ observation: { status } }) => status === 'backoff');
        else await agent.logged('step_taken', (line) => line['container'] === each && line['step'] === step);
        await agent.kill9();
        vault.setSecret(`${tenant}-${step}`, 'slow', 1, values.other);
        agent = start();
        await running(each);
        const read = await engine.exec(each, ['cat', '/run/secret/a', '/run/secret/b']);
        t.match(read, `${values.file}${values.other}`, step);
      }
      controlPlane.desireAll(made.map((each) => ({ id: each, desired: 'removed' })));
      await agent.logged('step_taken', (line) => line['container'] === made[0] && line['step'] === 'remove');
      await agent.kill9();
      agent = start();
      await until(
        () => `no files but those of ${id}: ${foldersOn(root).join()}`,
        () => foldersOn(root).every((path) => path.includes(id)) || undefined,
      );
    },
  );

  t.same(controlPlane.faults(), []);
});

t.test('without a tmpfs no file is written', async (t) => {
  const rig = await startRig(t);
  const root = temporaryFolder(t);
  rig.agent({ SECRET_FILES_DIR: root });
  rig.controlPlane.vault.setSecret(tenant, 'file', 1, 'never-on-a-disk');
  const image = await rig.script('secrets', steady);
  const { id } = rig.controlPlane.desire({ ...image, tenant, secrets: { env: {}, files: { '/x': file('file') } } });
  const { observation } = await rig.controlPlane.reported(id, ({ observation: { status } }) => status === 'backoff');
  t.match(observation, { reason: 'secret_missing', message: /SECRET_FILES_DIR of this host is no tmpfs/ });
  t.same(foldersOn(root), []);
  t.notOk(existsSync(join(rig.stateDir, 'boxes', 'x')));
});
