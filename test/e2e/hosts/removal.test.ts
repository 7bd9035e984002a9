/**
 * Hosts that come back after they were lost, and hosts that are removed by force. The test counts
 * containers in the engine: none may end up running twice.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, jwtAuthenticator } from '@nats-io/transport-node';
import t from 'tap';
import { keyFrom } from '../../../host-agent/link/identity/identity.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import type { HostView } from '../../../schemas/api/host.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey, named } from '../support/hosts.ts';
import { startRig, type Rig } from '../support/rig.ts';

/** Publishes a log line with the credentials of a host's agent; resolves to the answer or error. */
async function publishLogAs(rig: Rig, key: string): Promise<string> {
  const folder = rig.agentFolder(key);
  const { jwt } = JSON.parse(readFileSync(join(folder, 'identity.json'), 'utf8')) as { jwt: string };
  const seed = new Uint8Array(Buffer.from(readFileSync(join(folder, 'agent.nk'), 'utf8').trim()));
  try {
    const nc = await connect({
      servers: rig.nats.url,
      authenticator: jwtAuthenticator(jwt, seed),
      inboxPrefix: `_INBOX_${keyFrom(seed).getPublicKey()}`,
      reconnect: false,
    });
    try {
      return (await nc.request(`host.${key}.log.t.c`, 'line', { timeout: 5000 })).string();
    } finally {
      await nc.close();
    }
  } catch (error) {
    return String(error);
  }
}

const small = { cpu_limit: '0.1', mem_limit: '16m' };
const hosts = '/api/v2/operator/hosts';

t.test('a lost host that comes back stops the containers that were moved', async (t) => {
  const rig = await startRig(t, { actors: { HOST_LOST: '8s' } });
  const acme = await rig.client('acme');
  const operator = await rig.client('ops', 'operator');
  const made = await acme.createRunning([
    ...named('c', 8).map((name) => ({ name, ...rig.image, ...small })),
    ...named('p', 2).map((name) => ({ name, ...rig.image, ...small, host_key: hostKey })),
  ]);

  await rig.addHost('h2');
  rig.agent.server().pause();
  t.teardown(() => rig.agent.server().resume());
  await eventually(
    'the eight movable containers run on the other host',
    async () => acme.list(),
    ({ body }) => body.data.filter(({ host_key, status }) => host_key === 'h2' && status === 'running').length === 8,
  );
  const running = async (): Promise<string[]> =>
    (await rig.engine.containers())
      .filter(({ State }) => State.Running)
      .map(({ Config }) => `${String(Config.Labels[labels.container])}`)
      .sort();
  t.equal((await running()).length, 18, 'eight containers run twice while the agent is paused');

  rig.agent.server().resume();
  await eventually(
    'the engine runs every container once',
    running,
    (ids) => ids.length === 10 && new Set(ids).size === 10,
  );
  const view = await operator.call<{ data: HostView }>('GET', `${hosts}/${hostKey}`);
  t.match(view.body.data, { orphans_held: 0 });
  for (const container of made) t.equal((await acme.wait(container, 'running')).status, 200);
});

t.test('a host removed by force stops its containers, and none runs twice', async (t) => {
  const rig = await startRig(t);
  const acme = await rig.client('acme');
  const operator = await rig.client('ops', 'operator');
  const made = await acme.createRunning(named('c', 4).map((name) => ({ name, ...rig.image, ...small })));
  await rig.addHost('h2');
  const twice: string[][] = [];
  const running = async (): Promise<string[]> => {
    const ids = (await rig.engine.containers())
      .filter(({ State }) => State.Running)
      .map(({ Config }) => String(Config.Labels[labels.container]));
    if (new Set(ids).size < ids.length) twice.push(ids);
    return ids;
  };

  t.equal((await operator.call('DELETE', `${hosts}/${hostKey}`)).status, 409);
  t.equal((await operator.call('DELETE', `${hosts}/${hostKey}?force=true`)).status, 202);
  await eventually('the agent stops every container', running, ({ length }) => length === 0);
  const view = await operator.call<{ data: HostView }>('GET', `${hosts}/${hostKey}`);
  t.match(view.body.data, { status: 'fenced' });
  await eventually(
    'the NATS servers refuse the credentials of the fenced host',
    async () => publishLogAs(rig, hostKey),
    (outcome) => /authorization|authentication/i.test(outcome),
  );
  t.match(await publishLogAs(rig, 'h2'), /"stream":"LOGS"/);
  for (const container of made) {
    t.match((await acme.status(container)).body.data, { status: 'lost', reason: 'host_removed', host_key: hostKey });
  }

  t.equal((await operator.call('DELETE', `${hosts}/${hostKey}?force=true&dead=true`)).status, 202);
  await eventually('every container runs on the other host', running, ({ length }) => length === 4);
  await rig.agent.kill9();
  await rig.agent.start();
  for (const container of made) {
    t.equal((await acme.wait(container, 'running')).status, 200);
    t.match((await acme.get(container)).body.data, { host_key: 'h2' });
  }
  t.equal((await running()).length, 4, 'the restarted agent does not start them');
  t.same(twice, []);
});
