/**
 * The tenant network on one host (ADR 51): containers of a tenant reach each other by addresses
 * that are theirs for life, through the death of every program that made it so; no other tenant's
 * does.
 */
import t from 'tap';
import { run } from '../../../dev/process/run.ts';
import type { Container, WaitedStatusView } from '../../../schemas/api/container.ts';
import { canStartEngine } from '../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { imageRunning } from '../support/images.ts';
import { startRig } from '../support/rig.ts';
import { answering, compute, port, small, tenantNetwork } from './tenant.ts';

t.setTimeout(480_000);
const skip =
  canStartEngine || inCi ? await skipWithoutTools('nft', 'ip') : 'entering network namespaces needs Linux and root';

t.test('containers of one host', { skip }, async (t) => {
  const rig = await startRig(t, { hasNetwork: true });
  const image = await imageRunning(rig, answering);
  const [acme, other] = [await rig.client('acme'), await rig.client('other')];
  const declared = (name: string) => ({ name, ...image, ...small, env: { NAME: name }, host_key: hostKey });

  const { status, prints, attached, addressOf, ipv4Of, hears } = tenantNetwork(rig);
  const links = async (): Promise<number> => {
    const listed = await run('ip', ['-n', rig.network?.router ?? '', '-br', 'link'], { deadlineMs: 10_000 });
    return listed.stdout.split('\n').filter((line) => line.startsWith('lsc')).length;
  };

  const [web, store] = await acme.createRunning([declared('web'), declared('store')]);
  const [spy] = await other.createRunning([declared('spy')]);
  if (web === undefined || store === undefined || spy === undefined) throw new Error('no containers');
  const theirs = await addressOf(acme, store);
  for (const [client, container] of [
    [acme, web],
    [acme, store],
    [other, spy],
  ] as const)
    await attached(client, container);

  await t.test('a tenant’s reach each other, and another’s is refused', async (t) => {
    t.equal(await hears(acme, web, theirs), 'I am store');
    t.match((await status(acme, web)).network, { state: 'ready', reason: null, message: null });
    t.equal(await hears(acme, store, await addressOf(acme, web)), 'I am web');
    t.equal(await hears(acme, web, await ipv4Of(acme, store)), 'I am store');
    t.match(await hears(other, spy, await ipv4Of(acme, store)), /refused/);
    t.match(await hears(other, spy, theirs), /refused/);
    t.match(await hears(acme, web, await addressOf(other, spy)), /refused/);
  });

  await t.test('containers have names for each other, and for nobody else', async (t) => {
    for (const name of ['store', 'store.internal', 'STORE', 'store.'])
      t.equal(await hears(acme, web, name), 'I am store', name);
    t.match(await hears(acme, web, 'spy'), /bad address/);
    t.match(await hears(other, spy, 'store'), /bad address/);
    t.equal(await hears(other, spy, 'spy'), 'I am spy');
  });

  await t.test('a program that knows IPv4 alone is reached by name, and asks from its own address', async (t) => {
    const said = await prints(acme, web, 'nslookup -type=a store');
    t.match(said, await ipv4Of(acme, store));
    const asks = await prints(acme, web, `ip -4 route get ${await ipv4Of(acme, store)}`);
    t.match(asks, `src ${await ipv4Of(acme, web)}`);
  });

  await t.test('names of containers on other hosts, and aliases of a project', async (t) => {
    // One longshore-net serves one agent.
    await rig.addHost('h2', { NET_SOCKET: '' });
    const far = { ...declared('far'), host_key: 'h2' };
    const [there] = await acme.createRunning([far]);
    if (there === undefined) throw new Error('no container');
    const addressesOf = (name: string) => prints(acme, web, `nslookup ${name}`);
    const theirAddress = await addressOf(acme, there);
    await eventually(
      'its name is known',
      () => addressesOf('far'),
      (said) => said.includes(theirAddress),
    );
    const put = async (container: Container, path: string, body: object) =>
      t.equal((await acme.call('PUT', `${compute}/${container.id}/${path}`, body)).status, 200, path);
    for (const container of [web, store]) await put(container, 'project', { project: 'shop' });
    t.match(await hears(acme, web, 'db'), /bad address/);
    const spec = await acme.call<{ data: object }>('GET', `/api/v2/containers/${store.id}/spec`);
    const aliased = { ...spec.body.data, aliases: ['db'] };
    const replaced = await acme.call('PUT', `/api/v2/containers/${store.id}/spec`, aliased);
    t.equal(replaced.status, 200, replaced.text);
    await eventually(
      'the alias leads to it',
      () => hears(acme, web, 'db'),
      (said) => said === 'I am store',
    );
    await acme.remove(there);
    await eventually(
      'its name is gone',
      () => addressesOf('far'),
      (said) => said.includes('NXDOMAIN'),
    );
  });

  await t.test('the network is there before the first line of a container runs', async (t) => {
    const early = await imageRunning(rig, `nc -w 3 store ${port} </dev/null 2>&1; sleep 3600`);
    const names = ['one', 'two', 'three', 'four'];
    const made = await acme.createRunning(names.map((name) => ({ name, ...early, ...small, host_key: hostKey })));
    for (const container of made) {
      const said = await eventually(
        'it has spoken',
        async () => (await acme.call<string>('GET', `${compute}/${container.id}/logs`)).text,
        (text) => text.includes('store') || text.includes('nc:'),
      );
      t.match(said, /I am store/);
      await acme.remove(container);
    }
    await eventually('their links are gone', links, (count) => count === 3);
  });

  await t.test('an address is for life: through a stop, and through an update', async (t) => {
    await acme.stop(store);
    await acme.wait(store, 'stopped');
    t.match(await hears(acme, web, theirs), /refused/);
    await acme.start(store);
    await acme.wait(store, 'running');
    await eventually(
      'it answers',
      () => hears(acme, web, theirs),
      (said) => said === 'I am store',
    );
    const patch = { 'content-type': 'application/merge-patch+json' };
    const changed = { env: { NAME: 'store, again' } };
    t.equal((await acme.call('PATCH', `${compute}/${store.id}`, changed, patch)).status, 200);
    await eventually(
      'the new version answers',
      () => hears(acme, web, theirs),
      (said) => said === 'I am store, again',
    );
    t.equal(await addressOf(acme, store), theirs);
  });

  await t.test('the agent and longshore-net are killed: packets pass on', async (t) => {
    await rig.agent.kill9();
    await rig.network?.net.server().kill9();
    // An exec goes through the agent.
    await rig.agent.start();
    await eventually(
      'an exec reaches it',
      () => hears(acme, web, theirs),
      (said) => said.includes('store'),
    );
    const [late] = await acme.createRunning([declared('late')]);
    if (late === undefined) throw new Error('no container');
    const { network } = await status(acme, late);
    t.match(network, { state: 'unavailable', reason: 'not_attached', names: ['late', 'late.internal'] });
    t.match(await hears(acme, web, await addressOf(acme, late)), /refused/);
    await rig.network?.net.restart();
    await attached(acme, late);
    t.equal(await hears(acme, web, await addressOf(acme, late)), 'I am late');
    t.equal(await hears(acme, web, theirs), 'I am store, again');
  });

  await t.test('each resolver is killed in turn, and names resolve', async (t) => {
    for (const resolver of rig.network?.names ?? []) {
      const bound = async (): Promise<number> => {
        const counted = await run('grep', ['-c', 'resolver_bound', resolver.server().logFile], { deadlineMs: 10_000 });
        return Number(counted.stdout);
      };
      const before = await bound();
      await resolver.server().kill9();
      t.equal(await hears(acme, web, 'store'), 'I am store, again');
      await resolver.restart();
      await eventually('it answers again', bound, (count) => count > before);
    }
    t.equal(await hears(acme, web, 'store'), 'I am store, again');
  });

  await t.test('a container that is to be in no network, and an update that changes that', async (t) => {
    const containers = '/api/v2/containers';
    const declaration = { name: 'apart', image, ...small, env: { NAME: 'apart' }, host_key: hostKey };
    const before = await links();
    const made = await acme.call<{ data: Container }>('POST', containers, {
      ...declaration,
      network: { mode: 'none' },
    });
    t.equal(made.status, 201, made.text);
    const apart = made.body.data;
    t.equal((await acme.wait(apart, 'running')).status, 200);
    const isOut = async (): Promise<void> => {
      t.equal((await status(acme, apart)).network, null);
      t.notMatch(await prints(acme, apart, 'ip link'), /ls0/, 'it has no second interface');
      t.notMatch(await prints(acme, apart, 'cat /etc/resolv.conf'), /search internal/);
      t.notMatch(await hears(acme, apart, theirs), 'I am');
      t.equal(await links(), before);
    };
    await isOut();
    t.match(await hears(acme, web, 'apart'), /bad address/);

    const change = async (mode: 'tenant' | 'none'): Promise<void> => {
      const changed = await acme.call('PATCH', `${containers}/${apart.id}/spec`, { network: { mode } });
      t.equal(changed.status, 200, changed.text);
      const settled = await acme.call<{ data: WaitedStatusView }>(
        'GET',
        `${compute}/${apart.id}/wait?until=settled&timeout=120`,
      );
      t.equal(settled.body.data.outcome, 'done', settled.text);
    };
    await change('tenant');
    await attached(acme, apart);
    t.equal(await hears(acme, web, 'apart'), 'I am apart');
    t.equal(await hears(acme, apart, 'store'), 'I am store, again');

    await change('none');
    await eventually('its link is gone', links, (count) => count === before);
    await isOut();
    await eventually(
      'its name is gone',
      () => hears(acme, web, 'apart'),
      (said) => said.includes('bad address'),
    );
    await acme.remove(apart);
  });

  await t.test('a removed container is cut off', async (t) => {
    await acme.remove(store);
    await eventually(
      'it is gone',
      () => acme.get(store),
      ({ status }) => status === 404,
    );
    await eventually(
      'it is refused',
      () => hears(acme, web, theirs),
      (said) => said.includes('refused'),
    );
    t.ok(true);
  });
});
