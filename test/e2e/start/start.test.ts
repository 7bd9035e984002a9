/** `npm start` as a user runs it: one command starts a working stack, and Ctrl-C stops it. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import type { DemoPeer } from '../../../dev/demo/peer.ts';
import { cacheFolder, repositoryRoot } from '../../../dev/paths.ts';
import { demoImage } from '../../../dev/servers/registry.ts';
import type { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import { viewEngine, type EngineView } from '../../host-agent/support/engine.ts';
import { sharedEngine } from '../../support/servers.ts';
import { isGone, launch, processesAbout, type Dev } from './npm-start.ts';
import { eventually } from '../support/eventually.ts';

const shell = async (script: string): Promise<string> =>
  (await promisify(execFile)('/bin/sh', ['-c', script], { timeout: 120_000 })).stdout;

async function ask<T>(dev: Dev, path: string): Promise<T> {
  const answer = await fetch(`${dev.baseUrl}/api/v2/compute${path}`, {
    headers: { authorization: `Bearer ${dev.tenants.demo.token}` },
    signal: AbortSignal.timeout(120_000),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { data: T }).data;
}

const demoOf = async (dev: Dev): Promise<Container> => {
  const found = (await ask<Container[]>(dev, '')).filter(({ name }) => name === 'demo');
  if (found.length !== 1) throw new Error(`${found.length} containers are named demo`);
  return found[0]!;
};

const commandLineProgram = join(repositoryRoot, 'dist/dev/longshore.js');

t.test('npm start', async (whole) => {
  const folder = mkdtempSync(join(tmpdir(), 'longshore-start-'));
  whole.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const state = join(folder, 'state');
  const devFile = join(state, 'dev.json');
  const dockerHost = await sharedEngine(whole);
  const env = {
    ...process.env,
    DOCKER_HOST: dockerHost,
    LONGSHORE_STATE: state,
    LONGSHORE_CACHE: cacheFolder(process.env),
  };
  const readDev = (): Dev => JSON.parse(readFileSync(devFile, 'utf8')) as Dev;

  let engine: EngineView | undefined;
  let container: Container | undefined;
  let vpn: DemoPeer | undefined;
  let device = '';
  let dockerId: string | undefined;

  await whole.test('the first start shows a running container', async (t) => {
    const started = launch(t, env);
    await started.says('Up after');
    // In the background, a few seconds later.
    await started.says('demo runs longshore/demo:2 in the place of :1; healthy');
    const { cluster } = JSON.parse(readFileSync(join(state, 'agent/identity.json'), 'utf8')) as { cluster: string };
    engine = viewEngine(whole, dockerHost, cluster);

    t.test('dev.json', async (t) => {
      t.equal(statSync(devFile).mode & 0o777, 0o600);
      const dev = readDev();
      const token = /^[\w-]+\.[\w-]+\.[\w-]+$/;
      t.match(dev, {
        baseUrl: /^http:\/\/127\.0\.0\.1:\d+$/,
        tenants: { demo: { token }, other: { token } },
        operator: { token },
        docker: { host: dockerHost },
        image: { registry: /^127\.0\.0\.1:\d+$/, ...demoImage },
        vpn: {
          network: 'demo',
          peerId: /^[0-9a-f-]{36}$/,
          p12Password: /^\w{18}$/,
          pacToken: /^lsp_/,
          downloadToken: /^lsd_/,
        },
        nats: { url: /^nats:\/\/127\.0\.0\.1:\d+$/ },
        pid: started.pid,
      });
      const fieldsOf = (value: object): string[] => Object.keys(value).sort();
      t.same(fieldsOf(dev), ['baseUrl', 'docker', 'image', 'metrics', 'nats', 'operator', 'pid', 'tenants', 'vpn']);
      t.same(fieldsOf(dev.vpn), ['downloadToken', 'network', 'p12Password', 'pacToken', 'peerId']);
      t.same(fieldsOf(dev.tenants), ['demo', 'other']);
      t.same(fieldsOf(dev.image), ['registry', 'repository', 'tag']);
      for (const url of dev.metrics) t.match(await (await fetch(url)).text(), /^longshore_build_info\{/m, url);
      t.equal(dev.metrics.length, 3, 'gateway, actors, agent');
    });

    t.test('the output describes the demo container', async (t) => {
      const dev = readDev();
      container = await demoOf(dev);
      const status = await ask<ContainerStatusView>(dev, `/${container.id}/status`);
      t.equal(status.status, 'running');
      dockerId = (await engine?.only(container.id))?.Id;
      const output = started.output();
      t.equal(container.tag, '2');
      t.match(status.update, { phase: 'done', from: { tag: '1' }, to: { tag: '2' } });
      t.match(output, `demo (${container.id}) is running`);
      t.match(output, `at http://${status.addresses[0]?.address}`);
      const [shown] = output.match(/^ {2}log {8}(.*)$/m)?.slice(1) ?? [];
      const lines = await ask<{ line: string }[]>(dev, `/${container.id}/logs`);
      t.ok(
        lines.some(({ line }) => line === shown),
        `a line of its log: ${shown}`,
      );
      t.match(
        output,
        /^ {2}quota {6}containers [12] of 20, cpu_millis (?:250|500) of 8000, mem_bytes \d+ of \d+, vpn_peers 1 of 10, ports [12] of 1000, disk_bytes \d+ of \d+, deletes_per_hour 0 of 300$/m,
      );
      t.match(output, `  API        ${dev.baseUrl}`);
      if (!output.includes('containers of a tenant cannot reach each other'))
        t.match(output, /^ {2}network {4}demo reaches store by its name: Ahoy from a Longshore container/m);
      t.match(output, /^· NATS with JetStream .* … \d+\.\d s$/m, 'each step shows its duration');
    });

    t.test('the URLs of the demo peer’s files work', async (t) => {
      const urls = [...started.output().matchAll(/^ {2}(?:WireGuard|QR code|profile|PKCS#12|proxy) +(http\S+)$/gm)];
      t.equal(urls.length, 5);
      vpn = readDev().vpn;
      for (const [, url = ''] of urls) {
        const answer = await fetch(url);
        t.equal(answer.status, 200, url.replace(/token=.*/, ''));
        await answer.arrayBuffer();
      }
    });

    await t.test('the device of the demo peer reaches the demo container', async (t) => {
      if (!started.output().includes('demo reaches store')) return;
      const line = /^ {2}device {5}reaches demo through the tunnel: (ip netns exec \S+) curl -s (\S+)$/m;
      const [, inDevice = '', url = ''] = line.exec(started.output()) ?? [];
      device = inDevice.split(' ').at(-1) ?? '';
      const page = `fetch('${url}').then((answer) => answer.text()).then(console.log)`;
      t.match(await shell(`${inDevice} '${process.execPath}' -e "${page}"`), 'Ahoy from a Longshore container');
      t.ok(existsSync(`/run/netns/${device}`));
      t.equal(readDev().vpn.network, 'demo');
    });

    await t.test('the commands of the output work, and nobody signs in', async (t) => {
      const [, signedIn = ''] = /^ {2}(export LONGSHORE_CONFIG=\S+)$/m.exec(started.output()) ?? [];
      const commands = [...started.output().matchAll(/^ {2}npx longshore (.*)$/gm)].map(([, rest]) => rest);
      const hasNetwork = started.output().includes('demo reaches store');
      t.equal(commands.length, hasNetwork ? 5 : 4);
      const shown: string[] = [];
      for (const command of commands) {
        shown.push(await shell(`${signedIn}\n'${process.execPath}' '${commandLineProgram}' ${command}`));
      }
      const [list, logs] = shown;
      const [stop, hosts] = shown.slice(-2);
      if (hasNetwork) t.match(shown[2], 'Ahoy from a Longshore container');
      t.match(list, /^demo +[0-9a-f]{8} +\S+ +(?:running|starting) /m);
      t.match(logs, /^line \d+$/m);
      t.equal(stop, 'demo\n');
      t.match(hosts, /^local /m);
      const profiles = join(state, 'profiles.json');
      t.equal(statSync(profiles).mode & 0o777, 0o600);
      const { baseUrl, tenants } = readDev();
      const stopped = await ask<ContainerStatusView>(readDev(), `/${container?.id}/wait?status=stopped&timeout=100`);
      t.equal(stopped.status, 'stopped');
      const again = await fetch(`${baseUrl}/api/v2/compute/${container?.id}/start`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tenants.demo.token}` },
      });
      t.equal(again.status, 200);
      t.equal((await ask<ContainerStatusView>(readDev(), `/${container?.id}/wait?timeout=100`)).status, 'running');
    });

    await t.test('a second start on the same folder is refused and changes nothing', async (t) => {
      const before = readFileSync(devFile, 'utf8');
      const other = launch(t, env);
      t.equal(await other.ended(), 1);
      t.equal(
        other.output().trim(),
        `Longshore already runs on ${state} (process ${started.pid}). Stop it, or set LONGSHORE_STATE to another folder.`,
      );
      t.equal(readFileSync(devFile, 'utf8'), before);
      t.equal((await demoOf(readDev())).status, 'running');
    });

    await t.test('Ctrl-C stops everything that npm start has started', async (t) => {
      const servers = processesAbout(state);
      t.ok(servers.length >= 7, 'npm start, Redis, the registry, NATS, actors, gateway and agent run', {
        found: servers,
      });
      t.equal(await started.interrupt(), 0);
      await isGone(t, state, started);
      if (device !== '') t.notOk(existsSync(`/run/netns/${device}`));
      const running = (await engine?.containers())?.filter(({ State }) => State.Running);
      t.same(running, [], 'the containers are stopped, too, on an engine that npm start did not start');
    });
  });

  await whole.test('the next start finds the same container running', async (t) => {
    const started = launch(t, env);
    await started.says('Up after');
    // On a busy machine the container may be unknown until the host's first report.
    const found = await eventually(
      'the demo container runs',
      async () => demoOf(readDev()),
      ({ status }) => status === 'running',
    );
    t.match(found, { id: container?.id, inserted_at: container?.inserted_at });
    t.equal((await engine?.only(found.id))?.Id, dockerId, 'the engine’s container is the same');
    t.equal(found.tag, '2', 'it is not updated again');
    t.equal(readDev().pid, started.pid);
    t.same(readDev().vpn, vpn, 'the demo peer keeps its password and tokens');
    t.ok(existsSync(join(state, 'logs.previous/gateway.log')), 'the logs of the previous start are kept');
    t.equal(await started.interrupt(), 0);
    await isGone(t, state, started);
  });

  await whole.test('Ctrl-C during the start leaves nothing behind', async (t) => {
    const started = launch(t, env);
    await started.says('NATS with JetStream');
    t.equal(await started.interrupt(), 0);
    await isGone(t, state, started);
  });
});
