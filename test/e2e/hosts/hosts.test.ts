/**
 * The life of a host: it renews its credentials, takes containers while it has ports, is drained,
 * and is removed.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { labels } from '../../../host-agent/docker/ownership.ts';
import type { HostDetail } from '../../../schemas/api/drain.ts';
import type { HostView } from '../../../schemas/api/host.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';
import type { Spec } from '../../../schemas/api/spec.ts';
import type { WaitedStatusView } from '../../../schemas/api/container.ts';
import { limits } from '../../../schemas/limits.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey, named } from '../support/hosts.ts';
import { imageRunning } from '../support/images.ts';
import { startRig } from '../support/rig.ts';

/** Prints a line when it starts, and one when it gets SIGTERM. */
const counting = 'trap "echo ended; exit 0" TERM; echo begun; while :; do sleep 0.2; done';

const small = { cpu_limit: '0.1', mem_limit: '16m' };
const hosts = '/api/v2/operator/hosts';

t.test('a host renews its credentials before they expire', async (t) => {
  const rig = await startRig(t, { actors: { HOST_CREDENTIALS_TTL: '12s' } });
  const acme = await rig.client('acme');
  const jwt = (): string =>
    (JSON.parse(readFileSync(join(rig.agentFolder(hostKey), 'identity.json'), 'utf8')) as { jwt: string }).jwt;
  const seen = new Set<string>();
  await eventually(
    'two renewals',
    async () => seen.add(jwt()).size,
    (count) => count >= 3,
  );
  const { body } = await acme.create({ name: 'later', ...rig.image, ...small });
  t.equal(
    (await acme.wait(body.data, 'running')).status,
    200,
    'the host works after its first credentials have expired',
  );
});

t.test('a host is drained, then removed', async (t) => {
  const rig = await startRig(t);
  const acme = await rig.client('acme');
  const operator = await rig.client('ops', 'operator');
  const movable = named('c', 8).map((name) => ({ name, ...rig.image, ...small }));
  const made = await acme.createRunning([...movable, { name: 'pinned', ...rig.image, ...small, host_key: hostKey }]);
  const pinned = made.at(-1)!;

  await rig.addHost('h2');
  t.equal((await operator.call('PATCH', `${hosts}/${hostKey}`, { draining: true })).status, 200);
  const moved = await eventually(
    'everything that the platform placed runs on the other host',
    async () => acme.list(),
    ({ body }) =>
      body.data.every(({ name, host_key, status }) => name === 'pinned' || (host_key === 'h2' && status === 'running')),
  );
  t.equal(moved.body.data.find(({ name }) => name === 'pinned')?.host_key, hostKey, 'a pinned container stays');
  const byHost = await eventually(
    'no other container is left behind',
    async () => (await rig.engine.containers()).map(({ Config }) => String(Config.Labels[labels.host])).sort(),
    (keys) => keys.filter((key) => key === hostKey).length === 1,
  );
  t.equal(byHost.filter((key) => key === 'h2').length, 8);
  const view = await operator.call<{ data: HostDetail }>('GET', `${hosts}/${hostKey}`);
  const blocked = [{ tenant_id: 'acme', id: pinned.id, reason: 'pinned' }];
  const drain = { total: 9, moved: 8, left: 1, moving: 0, blocked };
  t.match(view.body.data, { draining: true, cordoned: true, orphans_held: 0, drain });

  await rig.agent.stop();
  const refused = await operator.call('DELETE', `${hosts}/${hostKey}`);
  t.match(
    refused,
    { status: 409, body: { error: 'conflict', reason: 'in_use', message: /drain it/ } },
    'the pinned container may still run',
  );
  t.equal((await operator.call('DELETE', `${hosts}/${hostKey}?force=true&dead=true`)).status, 202);
  t.equal((await operator.call('GET', `${hosts}/${hostKey}`)).status, 404);
  const lost = await acme.status(pinned);
  t.match(lost.body.data, { status: 'lost', reason: 'host_removed' });
  t.equal((await acme.remove(pinned)).status, 202);
  t.equal((await acme.get(pinned)).status, 404, 'the container is gone at once, because no host can run it');
});

t.test('a container moves to the host that its document names', async (t) => {
  const rig = await startRig(t);
  const acme = await rig.client('acme');
  const operator = await rig.client('ops', 'operator');
  const [web] = await acme.createRunning([{ name: 'web', ...(await imageRunning(rig, counting)), ...small }]);
  const path = `/api/v2/containers/${web!.id}/spec`;
  const moveTo = (host_key: string) => acme.call<{ data: Spec }>('PATCH', path, { host_key });
  const engineHosts = async () =>
    (await rig.engine.containers()).map(({ Config }) => String(Config.Labels[labels.host])).sort();

  await rig.addHost('h2');
  t.equal((await operator.call('PATCH', `${hosts}/h2`, { cordoned: true })).status, 200);
  t.match(await moveTo('h2'), { status: 409, body: { reason: 'no_host' } }, 'a cordoned host takes nothing');
  t.match(await acme.get(web!), { body: { data: { host_key: hostKey, status: 'running' } } }, 'and nothing changed');
  t.equal((await operator.call('PATCH', `${hosts}/h2`, { cordoned: false })).status, 200);

  const moved = await moveTo('h2');
  t.equal(moved.status, 200, moved.text);
  const generation = moved.headers.get('longshore-generation') ?? '';
  const waited = await acme.call<{ data: WaitedStatusView }>(
    'GET',
    `/api/v2/compute/${web!.id}/wait?until=settled&generation=${generation}&timeout=120`,
  );
  t.match(waited, { status: 200, body: { data: { outcome: 'done', status: 'running' } } });
  t.equal((await acme.get(web!)).body.data.host_key, 'h2');
  t.same(await eventually('one copy is left', engineHosts, (keys) => keys.length === 1), ['h2']);
  const lines = await eventually(
    'the lines of both hosts',
    async () => (await acme.call<{ data: LogEntry[] }>('GET', `/api/v2/compute/${web!.id}/logs`)).body.data,
    (entries) => entries.filter(({ line }) => line === 'begun').length === 2,
  );
  t.equal(lines.filter(({ line }) => line === 'ended').length, 1, 'the first has said its last word before the second');
  t.equal(lines.findIndex(({ line }) => line === 'ended') < lines.findLastIndex(({ line }) => line === 'begun'), true);
});

t.test('a container with ports goes to a host that has ports left', async (t) => {
  const rig = await startRig(t, { agent: { PUBLISH_PORTS: '25000-25001' } });
  const acme = await rig.client('acme');
  const operator = await rig.client('ops', 'operator');
  const view = async (key: string) => (await operator.call<{ data: HostView }>('GET', `${hosts}/${key}`)).body.data;
  const freePorts = (key: string, count: number) =>
    eventually(
      `free ports of ${key}`,
      async () => (await view(key)).free_ports,
      (free) => free === count,
    );
  const web = (name: string, ...ports: number[]) => ({ name, ...rig.image, ...small, ports });
  await freePorts(hostKey, 2);
  await acme.createRunning([web('first', 80), web('second', 80)]);
  await freePorts(hostKey, 0);
  // The first look at the disk comes before the engine has said where its data is.
  await eventually(
    'free disk',
    async () => (await view(hostKey)).free_disk_bytes,
    (free) => free !== null && free % limits.roomDiskStepBytes === 0,
  );

  const { body: third } = await acme.create(web('third', 80));
  t.match(await acme.status(third.data), { body: { data: { status: 'pending', reason: 'no_host' } } });
  const [without] = await acme.createRunning([web('without')]);
  t.equal(without?.host_key, hostKey, 'one without ports has room');

  await rig.addHost('h2', { PUBLISH_PORTS: '25100-25199' });
  const placed = await acme.wait(third.data, 'running');
  t.match(placed, { status: 200 });
  t.equal((await acme.get(third.data)).body.data.host_key, 'h2');
  await freePorts('h2', 99);
});
