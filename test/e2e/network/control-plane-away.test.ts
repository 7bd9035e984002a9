/**
 * NATS, all actors and all gateways are away, and the programs of two hosts are killed meanwhile:
 * names, links and the mesh go on, also when all of them start while nobody tells them anything.
 */
import t from 'tap';
import { freePort } from '../../../dev/process/process.ts';
import { run } from '../../../dev/process/run.ts';
import type { Container } from '../../../schemas/api/container.ts';
import { canStartEngine } from '../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { imageRunning } from '../support/images.ts';
import { startRig } from '../support/rig.ts';
import { answering, port, small, tenantNetwork } from './tenant.ts';

t.setTimeout(300_000);
const deadlineMs = 10_000;
const tools = ['nft', 'ip', 'wg', 'wireguard-go'] as const;
const skip =
  canStartEngine || inCi ? await skipWithoutTools(...tools) : 'entering network namespaces needs Linux and root';

t.test('two hosts without a control plane', { skip }, async (t) => {
  const rig = await startRig(t, { hasNetwork: true, agent: { MESH_ADDRESS: `127.0.0.1:${await freePort()}` } });
  const second = await rig.addNetwork();
  const secondAgent = await rig.addHost('h2', {
    NET_SOCKET: second.socket,
    MESH_ADDRESS: `127.0.0.1:${await freePort()}`,
  });
  const networks = [rig.network, second].filter((network) => network !== undefined);
  const agents = [rig.agent, secondAgent];
  const image = await imageRunning(rig, answering);
  const [acme, other] = [await rig.client('acme'), await rig.client('other')];
  const { addressOf, ipv4Of, attached, hears } = tenantNetwork(rig);
  const declared = (name: string, host: string) => ({ name, ...image, ...small, env: { NAME: name }, host_key: host });
  const [web, near, store] = await acme.createRunning([
    declared('web', hostKey),
    declared('near', hostKey),
    declared('store', 'h2'),
  ]);
  const [spy] = await other.createRunning([declared('spy', hostKey)]);
  if (web === undefined || near === undefined || store === undefined || spy === undefined)
    throw new Error('no containers');
  for (const container of [web, near, store]) await attached(acme, container);
  await attached(other, spy);
  const theirs = [await addressOf(acme, store), await ipv4Of(acme, store)];
  const spied = await addressOf(other, spy);

  /** By the engine, because an exec of Longshore goes through the control plane. */
  const says = async (from: Container, address: string): Promise<string> =>
    (await rig.engine.exec(from.id, ['sh', '-c', `nc -w 3 ${address} ${port} </dev/null 2>&1`])).trim();
  const ways: readonly (readonly [from: Container, to: string, said: RegExp])[] = [
    [web, 'near', /^I am near$/],
    [web, 'store', /^I am store$/],
    [store, 'web', /^I am web$/],
    ...theirs.map((address) => [web, address, /^I am store$/] as const),
    [web, 'spy', /bad address/],
    [web, spied, /refused/],
    [store, spied, /refused/],
    ...theirs.map((address) => [spy, address, /refused/] as const),
  ];
  /** The ways that are not as they should be. */
  const wrong = async (): Promise<string[]> => {
    const said = await Promise.all(ways.map(async ([from, to]) => says(from, to)));
    return ways.flatMap(([from, to, right], at) =>
      right.test(said[at] ?? '') ? [] : [`${from.name} to ${to}: ${said[at]}`],
    );
  };
  const isWhole = (when: string): Promise<string[]> => eventually(when, wrong, (all) => all.length === 0);
  await isWhole('at first');

  await rig.gateway.kill9();
  await rig.actors.kill9();
  await rig.nats.kill9();

  await t.test('all goes on', async (t) => {
    t.same(await wrong(), []);
  });

  await t.test('the agents are killed: all goes on', async (t) => {
    for (const agent of agents) await agent.kill9();
    t.same(await wrong(), []);
  });

  await t.test('longshore-net and the resolvers start again', async (t) => {
    for (const { net, names } of networks) {
      for (const program of [net, ...names]) await program.server().kill9();
      await net.restart();
      for (const resolver of names) await resolver.restart();
    }
    await isWhole('after the restart');
    t.same(await wrong(), []);
  });

  await t.test('they start where the kernel has nothing left', async (t) => {
    for (const { net, names, router } of networks) {
      for (const program of [net, ...names]) await program.server().kill9();
      const deleted = await run('ip', ['netns', 'delete', router], { deadlineMs });
      t.equal(deleted.code, 0, deleted.stderr);
    }
    t.equal((await wrong()).length > 0, true, 'without a router nobody is reached');
    for (const { net, names } of networks) {
      await net.restart();
      for (const resolver of names) await resolver.restart();
    }
    await isWhole('with new links');
  });

  // An agent is ready when it has reached the control plane.
  let areReady = Promise.resolve([] as unknown[]);
  await t.test('the agents start, and keep the containers and their network', async (t) => {
    areReady = Promise.all(agents.map((agent) => agent.start()));
    areReady.catch(() => undefined);
    const killed = await rig.engine.only(store.id);
    t.equal((await rig.engine.call('POST', `/containers/${killed.Id}/kill`)).status, 204);
    await isWhole('a container that ended is back in the network');
    t.not((await rig.engine.only(store.id)).State.StartedAt, killed.State.StartedAt);
  });

  await t.test('the control plane is back, and a new container is reached by its name', async (t) => {
    await rig.nats.restart();
    await rig.actors.start();
    await rig.gateway.start();
    await areReady;
    t.same(await wrong(), []);
    const [late] = await acme.createRunning([declared('late', 'h2')]);
    if (late === undefined) throw new Error('no container');
    await eventually(
      'it answers',
      () => hears(acme, web, 'late'),
      (said) => said === 'I am late',
    );
    t.same(await wrong(), []);
  });
});
