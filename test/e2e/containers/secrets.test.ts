/** Secrets and private registries over HTTP, on real servers and programs (ADR 37, ADR 38). */
import t from 'tap';
import { pushTestImage } from '../../../dev/servers/registry.ts';
import { steady } from '../../host-agent/support/rig.ts';
import { passwords, startPrivateRegistry, username } from '../../support/private-registry.ts';
import type { Client } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { startRig } from '../support/rig.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const limits = { cpu_limit: '0.1', mem_limit: '16m' };
const [password] = passwords;

t.test('secrets and logins', async (t) => {
  const rig = await startRig(t, {
    agent: { UPDATE_VERIFY: '500ms' },
    gateway: { VAULT_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}` },
  });
  const acme = await rig.client('acme');
  const put = async (client: Client, path: string, body: object) => {
    const { status, text } = await client.call('PUT', `${compute}${path}`, body);
    if (status >= 300) throw new Error(`PUT ${path}: ${status} ${text}`);
  };
  const image = { registry: rig.image.registry, repository: 'longshore/e2e-secrets', tag: '1' };
  // The path that it declares as VOLUME keeps its data over an update to another value.
  await pushTestImage(image.registry, { ...image, cmd: ['sh', '-c', steady], volumes: ['/data'] });

  await t.test('a container starts with its secrets, and another value updates it', async (t) => {
    for (const name of ['token', 'key']) await put(acme, `/secrets/${name}`, { value: `first ${name}` });
    const made = await acme.call<{ data: { id: string } }>('POST', `${compute}?start=false`, {
      name: 'web',
      ...image,
      ...limits,
    });
    const { id } = made.body.data;
    const uses = { env: { TOKEN: 'token' }, files: { '/run/key': { secret: 'key' } } };
    await put(acme, `/${id}/secrets`, uses);
    await acme.start({ id });
    t.equal((await acme.wait({ id }, 'running')).status, 200);
    const reading = async () => {
      const [container] = (await rig.engine.containers()).filter(
        ({ State, Config }) => State.Running && Config.Labels['longshore.container'] === id,
      );
      if (container === undefined) return 'none runs';
      return rig.engine
        .exec(id as Parameters<typeof rig.engine.exec>[0], ['sh', '-c', 'echo $TOKEN; cat /run/key'])
        .catch(String);
    };
    t.match(await reading(), /first token\s+first key/);
    const exec = (...command: string[]) =>
      rig.engine.exec(id as Parameters<typeof rig.engine.exec>[0], ['sh', '-c', ...command]);
    await exec('echo written > /data/file');
    await put(acme, '/secrets/key', { value: 'second key' });
    await eventually('the second value', reading, (text) => /first token\s+second key/.test(text));
    await eventually(
      'what it wrote',
      () => exec('cat /data/file').catch(String),
      (text) => /^written/.test(text),
    );
  });

  await t.test('a login of the registry starts what was refused; another tenant does not get the image', async (t) => {
    const repository = 'longshore/e2e-private';
    const cmd = ['sh', '-c', `${steady} # private`];
    const registry = await startPrivateRegistry(t, 'basic', [{ repository, tag: '1', cmd }]);
    const body = { ...limits, registry: registry.address, repository, tag: '1' };
    const mine = (await acme.create({ name: 'private', ...body })).body.data;
    const refused = await acme.wait(mine, 'failed');
    t.match(refused.body.data, { status: 'failed', reason: 'image_auth' });
    await put(acme, `/registries/${registry.address}`, { username, password });
    t.equal((await acme.wait(mine, 'running')).status, 200, 'without a start');
    const other = await rig.client('other');
    const theirs = (await other.create({ name: 'stolen', ...body })).body.data;
    t.match((await other.wait(theirs, 'failed')).body.data, { status: 'failed', reason: 'image_auth' });
  });
});
