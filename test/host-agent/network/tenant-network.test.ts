/** The agent's side of the tenant network. A server of this test answers as `longshore-net`. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { VpnKeys } from '../../../host-agent/secrets/vpn-keys.ts';
import { TenantNetwork } from '../../../host-agent/network/tenant-network.ts';
import type { Inspection } from '../../../host-agent/docker/answers.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import { shapeOf } from '../../../host-agent/sandbox/shape.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { ContainerNetwork } from '../../../schemas/api/fields/network-part.ts';
import type { DesiredNetwork } from '../../../schemas/wire/net.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { owner, tenant } from '../support/decisions.ts';

const idOf = (at: number): ContainerId => `0190a000-0000-7000-8000-${String(at).padStart(12, '0')}` as ContainerId;
const [web, store] = [idOf(1), idOf(2)];
const none: ContainerNetwork = { mode: 'none' };

async function start(t: Test, kept = (): Promise<void> => Promise.resolve()) {
  const folder = temporaryFolder(t);
  const socket = join(folder, 'net.sock');
  const heard: DesiredNetwork[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const desired = JSON.parse(Buffer.concat(chunks).toString()) as DesiredNetwork;
      heard.push(desired);
      const attached = Object.fromEntries(desired.attached.map(({ id }) => [id, null]));
      response.end(JSON.stringify({ attached, mesh: null, vpn: {} }));
    });
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  t.teardown(() => server.close());
  const sandboxes = new Map<string, string>();
  const inspect = async (dockerId: string): Promise<Inspection | undefined> => {
    const shape = sandboxes.get(dockerId);
    if (shape === undefined) return Promise.resolve(undefined);
    const state = { Status: 'running', StartedAt: 'now' };
    const Config = { Labels: { [labels.sandbox]: shape } };
    const NetworkSettings = { SandboxKey: `/run/netns/${dockerId}` };
    return Promise.resolve({ Id: dockerId, State: state, Config, NetworkSettings } as unknown as Inspection);
  };
  const network = new TenantNetwork({
    cluster: owner.cluster,
    host: owner.host,
    socket,
    mtu: 1420,
    meshAt: undefined,
    resolvConf: join(folder, 'resolv.conf'),
    engine: { inspect },
    wayOut: () => Promise.resolve(undefined),
    vpnKeys: new VpnKeys({
      values: { vpnKey: () => Promise.resolve({ kind: 'missing', why: 'none', isFinal: true }) },
      nowMs: Date.now,
      log: quietLog,
    }),
    kept,
    onPeers: () => {},
    nowMs: () => Date.now(),
    networks: () => ({ interfaces: {}, routes: [], nameservers: [] }),
    faults: { restate: () => {}, clear: () => {} },
    onChange: () => {},
    log: quietLog,
  });
  t.teardown(() => network.close());
  return {
    network,
    sandboxes,
    heard,
    /** Ids of what is to be attached, by the last message. */
    attached: () => heard.at(-1)?.attached.map(({ id, namespace }) => `${id} ${namespace}`),
    look: async (users: readonly (readonly [ContainerId, string])[]) =>
      network.look(
        new Map(users),
        () => tenant,
        () => true,
      ),
  };
}

t.test('a network is on disk before longshore-net gets it', async (t) => {
  let settle: (() => void) | undefined;
  const { sandboxes, heard, look } = await start(t, () => new Promise((resolve) => (settle = resolve)));
  sandboxes.set('s1', shapeOf([80]));
  const looking = look([[web, 's1']]);
  await until('it is to be kept', () => settle !== undefined);
  t.same(heard, []);
  settle?.();
  await looking;
  t.equal(heard.length, 1);
});

t.test('a sandbox of a container that is to be in no network is never attached', async (t) => {
  const { network, sandboxes, attached, look } = await start(t);
  sandboxes.set('s1', shapeOf([80])).set('s2', shapeOf([80], none));
  await look([
    [web, 's1'],
    [store, 's2'],
  ]);
  t.same(attached(), [`${web} /run/netns/s1`]);
  t.match(network.seen(web), { state: 'ready' });
  t.equal(network.seen(store), undefined, 'nothing is said of it');
  await network.attach({ id: store, tenant }, 's2');
  t.same(attached(), [`${web} /run/netns/s1`]);
});

t.test('an update to no network takes it away, and a roll back brings it back', async (t) => {
  const { network, sandboxes, attached, look } = await start(t);
  sandboxes.set('s1', shapeOf([])).set('s2', shapeOf([], none));
  await look([[web, 's1']]);
  await network.attach({ id: web, tenant }, 's2');
  t.same(attached(), [], 'before the new version starts');
  t.equal(network.seen(web), undefined);
  await network.attach({ id: web, tenant }, 's1');
  t.same(attached(), [`${web} /run/netns/s1`]);
});

t.test('a container in no network has no name, also if the owner names nobody', async (t) => {
  const { network, heard, look } = await start(t);
  await look([]);
  const known = { all: () => [], ends: () => [], range: () => undefined, servers: () => [] };
  const own = { tenant, desired: 'running' as const };
  network.name(known, [
    { id: web, name: 'web', ...own },
    { id: store, name: 'store', ...own, network: none },
  ]);
  await look([]);
  t.same(
    heard.at(-1)?.members.map(({ name }) => name),
    ['web'],
  );
});
