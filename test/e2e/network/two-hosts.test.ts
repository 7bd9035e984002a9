/**
 * The tenant network on two hosts (ADR 51): containers of a tenant reach each other through the
 * mesh, by names that lead to a container wherever it runs.
 */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { sleep } from '../../../lib/time/backoff.ts';
import { freePort } from '../../../dev/process/process.ts';
import { canStartEngine } from '../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { imageRunning } from '../support/images.ts';
import { startRig } from '../support/rig.ts';
import { cutWire } from './cut.ts';
import { answering, compute, inside, small, tenantNetwork } from './tenant.ts';

t.setTimeout(300_000);
const probePort = 7001;
const probePauseMs = 20;
const tools = ['nft', 'ip', 'wg', 'wireguard-go'] as const;
const skip =
  canStartEngine || inCi ? await skipWithoutTools(...tools) : 'entering network namespaces needs Linux and root';

t.test('containers of two hosts', { skip }, async (t) => {
  const [portOne, portTwo] = [await freePort(), await freePort()];
  const rig = await startRig(t, { hasNetwork: true, agent: { MESH_ADDRESS: `127.0.0.1:${portOne}` } });
  const second = await rig.addNetwork();
  await rig.addHost('h2', { NET_SOCKET: second.socket, MESH_ADDRESS: `127.0.0.1:${portTwo}` });
  const image = await imageRunning(rig, answering);
  const [acme, other] = [await rig.client('acme'), await rig.client('other')];
  const operator = await rig.client('ops', 'operator');
  const { attached, addressOf, ipv4Of, hears, prints, status } = tenantNetwork(rig);
  const declared = (name: string, host: string | undefined) => ({
    name,
    ...image,
    ...small,
    env: { NAME: name },
    ...(host === undefined ? {} : { host_key: host }),
  });
  const [web, store] = await acme.createRunning([declared('web', hostKey), declared('store', 'h2')]);
  const [spy] = await other.createRunning([declared('spy', 'h2')]);
  if (web === undefined || store === undefined || spy === undefined) throw new Error('no containers');
  for (const container of [web, store]) await attached(acme, container);
  await attached(other, spy);
  const heard = (name: string) =>
    eventually(
      `${name} answers`,
      () => hears(acme, web, name),
      (said) => said === `I am ${name}`,
    );

  await t.test('a tenant’s reach each other by name, and another’s is refused', async (t) => {
    await heard('store');
    t.equal(await hears(acme, store, 'web'), 'I am web');
    t.equal(await hears(acme, web, await ipv4Of(acme, store)), 'I am store');
    t.match(await hears(acme, web, await ipv4Of(other, spy)), /refused/);
    t.match(await hears(acme, web, await addressOf(other, spy)), /refused/);
    t.match(await hears(other, spy, await addressOf(acme, web)), /refused/);
    t.match(await hears(other, spy, 'web'), /bad address/);
  });

  await t.test('hosts cut from each other: names stay, nothing passes, and all of it comes back', async (t) => {
    const cut = await cutWire(t, [portOne, portTwo]);
    // Root in a sandbox of the other tenant sends all the while.
    const [own, theirs] = [await inside(t, rig, web), await inside(t, rig, spy)];
    const addresses = [await addressOf(acme, web), await ipv4Of(acme, web)];
    await own('listen', probePort);
    let isOver = false;
    const tried = (async () => {
      const answers = new Set<string>();
      while (!isOver) {
        for (const address of addresses) {
          await theirs('send', address, probePort, 'across tenants');
          answers.add(await theirs('connect', address, probePort));
        }
        await sleep(probePauseMs);
      }
      return [...answers];
    })();

    await eventually(
      'nothing passes',
      () => hears(acme, web, 'store'),
      (said) => !said.includes('I am'),
    );
    t.match(await prints(acme, web, 'nslookup store'), await addressOf(acme, store));
    t.match(await prints(acme, store, 'nslookup web'), await addressOf(acme, web));
    t.match((await status(acme, web)).network, { state: 'ready' });
    // The control plane is there for both.
    const [late] = await acme.createRunning([declared('late', 'h2')]);
    if (late === undefined) throw new Error('no container');
    await attached(acme, late);
    const lateAt = await addressOf(acme, late);
    await eventually(
      'a new name is known beyond the cut',
      () => prints(acme, web, 'nslookup late'),
      (said) => said.includes(lateAt),
    );
    t.notMatch(await hears(acme, web, 'late'), /I am/);
    t.equal(await hears(acme, store, 'late'), 'I am late', 'on its own host it is reached');

    await cut.mend();
    await heard('store');
    await heard('late');
    t.equal(await hears(acme, store, 'web'), 'I am web');
    isOver = true;
    t.same(await tried, ['ECONNREFUSED']);
    const friend = await inside(t, rig, store);
    const packets = await eventually(
      'one of its own tenant arrives',
      async () => {
        await friend('send', addresses[0] ?? '', probePort, 'of the tenant');
        return own('heard', probePort);
      },
      (heard) => heard.length > 0,
    );
    t.ok(
      packets.every((packet) => packet.endsWith(' of the tenant')),
      'and none of the other',
    );
    await acme.remove(late);
  });

  await t.test('a host whose key is lost has another, and the others learn it', async (t) => {
    await second.net.stop();
    rmSync(join(dirname(second.net.server().logFile), 'mesh-keys.json'));
    await second.net.restart();
    await heard('store');
    t.equal(await hears(acme, store, 'web'), 'I am web');
  });

  await t.test('a container that moves is reached by its name, at the same address', async (t) => {
    const home = declared('nomad', undefined);
    const cordon = (key: string, cordoned: boolean) =>
      operator.call('PATCH', `/api/v2/operator/hosts/${key}`, { cordoned });
    t.equal((await cordon(hostKey, true)).status, 200);
    const [nomad] = await acme.createRunning([home]);
    if (nomad === undefined) throw new Error('no container');
    t.equal((await acme.get(nomad)).body.data.host_key, 'h2');
    const addresses = [await addressOf(acme, nomad), await ipv4Of(acme, nomad)];
    await heard('nomad');
    t.equal((await cordon(hostKey, false)).status, 200);
    t.equal((await operator.call('PATCH', '/api/v2/operator/hosts/h2', { draining: true })).status, 200);
    await eventually(
      'it runs on the other host',
      () => acme.get(nomad),
      ({ body }) => body.data.host_key === hostKey && body.data.status === 'running',
    );
    await heard('nomad');
    t.same([await addressOf(acme, nomad), await ipv4Of(acme, nomad)], addresses);
    for (const address of addresses) t.equal(await hears(acme, web, address), 'I am nomad', address);
    t.equal((await acme.call('DELETE', `${compute}/${nomad.id}`)).status, 202);
  });
});
