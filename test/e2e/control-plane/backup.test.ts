/**
 * A cluster is backed up under load, loses all state in NATS, and is restored. Every write that was
 * acknowledged before the backup is there, and hosts keep their containers. The agent runs on and
 * obeys the restored control plane.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run, type Ran } from '../../../dev/process/run.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { Container } from '../../../schemas/api/container.ts';
import type { UsageView } from '../../../schemas/api/usage/usage.ts';
import type { HostView } from '../../../schemas/api/host.ts';
import { temporaryFolder } from '../../support/folder.ts';
import type { Client } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { startRig, type Rig } from '../support/rig.ts';

const small = { cpu_limit: '0.1', mem_limit: '16m' };
const ended = { kind: 'code', code: 1 };

const runCommand = ({ nats }: Rig, program: 'backup' | 'restore', ...args: string[]): Promise<Ran> =>
  run(process.execPath, [join(repositoryRoot, 'dist/ops/longshore.js'), program, ...args], {
    deadlineMs: 120_000,
    env: { PATH: process.env['PATH'], NATS_URLS: nats.url, NATS_CREDS_FILE: nats.credsFile },
  });

/** Deletes all data of JetStream, but not the NATS keys. */
async function destroyJetStream({ nats }: Rig): Promise<void> {
  await nats.kill9();
  const folder = join(dirname(nats.logFile), 'jetstream');
  if (readdirSync(folder).length === 0) throw new Error(`${folder} was empty`);
  rmSync(folder, { recursive: true });
  await nats.restart();
}

async function listAll(client: Client): Promise<Container[]> {
  const all: Container[] = [];
  for (let cursor = ''; ;) {
    const { body } = await client.call<{ data: Container[]; next_cursor?: string | null }>(
      'GET',
      `/api/v2/compute${cursor}`,
    );
    all.push(...body.data);
    if (body.next_cursor == null) return all;
    cursor = `?cursor=${body.next_cursor}`;
  }
}

/** Creates containers until `stop`; `acknowledged` returns those created so far. */
function createUnderLoad(client: Client) {
  const acknowledged: Container[] = [];
  let isOn = true;
  const working = (async () => {
    while (isOn) {
      // Without an image the containers never run, which keeps the load light.
      const { status, body } = await client.create({ name: `load-${randomUUID()}`, ...small });
      if (status === 201) acknowledged.push(body.data);
      await sleep(5);
    }
  })();
  return {
    acknowledged: () => [...acknowledged],
    stop: async () => {
      isOn = false;
      await working;
    },
  };
}

t.test('a restore brings back the state of the backup', async (t) => {
  const rig = await startRig(t, {
    agent: { USAGE_INTERVAL: '500ms', USAGE_REPORT_INTERVAL: '500ms', UPDATE_VERIFY: '500ms' },
    gateway: { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}` },
  });
  const folder = join(temporaryFolder(t), 'backup');
  const operator = await rig.client('ops', 'operator');
  const acme = await rig.client('acme');
  const tenantPath = '/api/v2/operator/tenants/acme';
  const caps = { containers: 5000, cpu_millis: null, mem_bytes: null };
  t.equal((await operator.call('PUT', tenantPath, { caps })).status, 200);

  const declare = async (name: string): Promise<Container> => {
    const { status, body } = await acme.create({ name, ...rig.image, ...small }, { 'idempotency-key': `key-${name}` });
    t.equal(status, 201, name);
    t.equal((await acme.wait(body.data, 'running')).status, 200, `${name} runs`);
    return body.data;
  };
  const [web, worker, idle] = [await declare('web'), await declare('worker'), await declare('idle')];
  const put = async (path: string, body: object): Promise<void> => {
    const { status } = await acme.call('PUT', `/api/v2/compute${path}`, body);
    t.ok(status === 200 || status === 201, `${path}: ${status}`);
  };
  await put('/secrets/key', { value: 'of the backup' });
  await put(`/${idle.id}/secrets`, { files: { '/run/key': { secret: 'key' } } });
  const secretIn = (container: Container) => () => rig.engine.exec(container.id, ['cat', '/run/key']).catch(String);
  await eventually('the container has its secret', secretIn(idle), (text) => text === 'of the backup');
  t.equal((await acme.stop(idle)).status, 200);
  t.equal((await acme.wait(idle, 'stopped')).status, 200);
  const secretsOf = async () => (await acme.call<{ data: unknown }>('GET', '/api/v2/compute/secrets')).body.data;
  interface Key {
    readonly id: string;
    readonly token: string;
  }
  const makeKey = async (name: string): Promise<Key> => {
    const { status, body } = await acme.call<{ data: Key }>('POST', '/api/v2/keys', { name, scopes: ['read'] });
    t.equal(status, 201, name);
    return body.data;
  };
  const dropKey = async ({ id }: Key): Promise<void> => {
    t.equal((await acme.call('DELETE', `/api/v2/keys/${id}`)).status, 204);
  };
  const reads = async ({ token }: Key): Promise<number> =>
    (await acme.call('GET', '/api/v2/compute', undefined, { authorization: `Bearer ${token}` })).status;
  const keysOf = async () => (await acme.call<{ data: unknown }>('GET', '/api/v2/keys')).body.data;
  const [kept, dropped] = [await makeKey('kept'), await makeKey('dropped')];
  await dropKey(dropped);
  const usageOf = async ({ id }: Container) => {
    const { body } = await acme.call<{ data: UsageView }>('GET', '/api/v2/compute/usage');
    return body.data.containers.find((row) => row.id === id);
  };
  // A report that counts one that runs up to now has all of the one that has ended.
  const { started_at } = (await acme.status(web)).body.data;
  const ranS = (Date.now() - Date.parse(started_at ?? '')) / 1000;
  await eventually(
    'usage',
    async () => (await usageOf(web))?.container_seconds ?? 0,
    (seconds) => seconds > ranS,
  );
  const logsOf = async (container: Container) =>
    acme.call<{ data: { line: string }[] }>('GET', `/api/v2/compute/${container.id}/logs?limit=500`);
  // Log lines of the stopped container: those of a running one would change.
  await eventually(
    'log lines',
    () => logsOf(idle),
    ({ body }) => body.data.length > 0,
  );
  const eventsOf = async (container: Container) =>
    acme.call<{ data: { id: string; type: string }[] }>('GET', `/api/v2/compute/${container.id}/events`);
  const dockerIds = async () =>
    (await Promise.all([web, worker].map(({ id }) => rig.engine.only(id)))).map(({ Id, State }) => [
      Id,
      State.StartedAt,
    ]);
  const before = {
    docker: await dockerIds(),
    events: (await eventsOf(idle)).body.data,
    lines: (await logsOf(idle)).body.data,
    tenant: (await operator.call('GET', tenantPath)).body,
    secrets: await secretsOf(),
    keys: await keysOf(),
    usage: await usageOf(idle),
  };

  const load = createUnderLoad(acme);
  await eventually(
    'load',
    async () => load.acknowledged(),
    ({ length }) => length > 20,
  );
  const beforeBackup = load.acknowledged();
  const made = await runCommand(rig, 'backup', folder);
  t.equal(made.code, 0, made.stdout + made.stderr);
  await load.stop();
  t.ok(load.acknowledged().length > beforeBackup.length, 'creates are acknowledged during the backup');

  // Changes after the backup.
  await put('/secrets/key', { value: 'of later' });
  const late = await declare('late');
  t.equal((await acme.stop(worker)).status, 200);
  t.equal((await acme.wait(worker, 'stopped')).status, 200);
  t.equal((await acme.start(worker)).status, 200);
  t.equal((await acme.wait(worker, 'running')).status, 200);
  const restarted = await rig.engine.only(worker.id);

  const refused = await runCommand(rig, 'restore', folder, '--replace');
  t.match(refused, { code: 1, stderr: /an actors process is running/ });

  const destroyAndRestore = async (t: Test): Promise<void> => {
    await destroyJetStream(rig);
    // Nothing supervises the programs here, so the test starts them again.
    t.same(await rig.actors.server().exited, ended, 'actors exit when their cluster is gone');
    const restored = await runCommand(rig, 'restore', folder);
    t.equal(restored.code, 0, restored.stdout + restored.stderr);
    t.same(await rig.gateway.server().exited, ended, 'the gateway exits when the cluster is a new incarnation');
    await rig.actors.start();
    await rig.gateway.start();
  };

  const isAsAtTheBackup = async (t: Test, orphan: Container): Promise<void> => {
    const listed = new Map((await listAll(acme)).map((container) => [container.id, container]));
    for (const { id, name } of [web, worker, idle, ...beforeBackup]) t.ok(listed.has(id), `${name} is restored`);
    t.notOk(listed.has(orphan.id), 'a container made after the backup is not');
    for (const container of [web, worker]) {
      const status = await eventually(
        'running',
        () => acme.status(container),
        (reply) => reply.body.data?.status === 'running',
      );
      t.equal(status.status, 200);
    }
    t.equal((await acme.status(idle)).body.data.status, 'stopped');
    t.same((await operator.call('GET', tenantPath)).body, before.tenant);
    const quota = await acme.call<{ usage: { containers: number } }>('GET', '/api/v2/compute/quota');
    t.match(quota.text, new RegExp(`"containers":${listed.size}\\b`), 'the quota counts the restored containers');
    t.same((await eventsOf(idle)).body.data, before.events);
    t.same(await secretsOf(), before.secrets);
    t.same(await keysOf(), before.keys);
    t.equal(await reads(kept), 200, 'a key is as good as before');
    t.equal(await reads(dropped), 401, 'one that was deleted before the backup stays so');
    t.same(await usageOf(idle), before.usage);
    t.same((await logsOf(idle)).body.data.slice(0, before.lines.length), before.lines);
    const again = await acme.create({ name: 'web', ...rig.image, ...small }, { 'idempotency-key': 'key-web' });
    t.equal(again.body.data.id, web.id, 'the idempotency key still names the container');
    const held = await eventually(
      'the host holds the container made after the backup',
      () => operator.call<{ data: HostView }>('GET', `/api/v2/operator/hosts/${hostKey}`),
      ({ body }) => body.data.orphans_held === 1,
    );
    t.equal((await rig.engine.containers(orphan.id)).length, 1, 'the held container is not removed');
    await operator.call('PATCH', `/api/v2/operator/hosts/${held.body.data.key}`, { remove_orphans: true });
    await eventually(
      'the host removes the orphan after the approval',
      () => rig.engine.containers(orphan.id),
      ({ length }) => length === 0,
    );
  };

  const hostObeys = async (t: Test): Promise<Container> => {
    t.equal((await acme.stop(worker)).status, 200);
    t.equal((await acme.wait(worker, 'stopped')).status, 200);
    t.equal((await rig.engine.only(worker.id)).State.Running, false);
    t.equal((await acme.start(worker)).status, 200);
    t.equal((await acme.wait(worker, 'running')).status, 200);
    const fresh = await acme.create({ name: `fresh-${randomUUID()}`, ...rig.image, ...small });
    t.equal((await acme.wait(fresh.body.data, 'running')).status, 200);
    t.match(await eventsOf(worker), { body: { data: [{}] } });
    await put(`/${fresh.body.data.id}/secrets`, { files: { '/run/key': { secret: 'key' } } });
    await eventually('the secret of the backup', secretIn(fresh.body.data), (text) => text === 'of the backup');
    return fresh.body.data;
  };

  let later = late;
  await t.test('restored', async (t) => {
    await destroyAndRestore(t);
    await isAsAtTheBackup(t, late);
    const docker = await dockerIds();
    t.same(docker[0], before.docker[0], 'web is not restarted');
    t.equal(docker[1]?.[0], restarted.Id, 'worker is not created again');
    t.equal(docker[1]?.[1], restarted.State.StartedAt);
    later = await hostObeys(t);
  });
  await t.test('restored again from the same backup', async (t) => {
    await destroyAndRestore(t);
    await isAsAtTheBackup(t, later);
    t.same((await dockerIds())[0], before.docker[0], 'web is not restarted');
    await hostObeys(t);
  });
  t.equal(rig.agent.server().exit(), undefined, 'the agent never exited');
  const host = await operator.call<{ data: { status: string } }>('GET', `/api/v2/operator/hosts/${hostKey}`);
  t.equal(host.body.data.status, 'up');
});
