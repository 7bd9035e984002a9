/** The images of deploy/images/: buildah builds them, an engine runs them with NATS and Redis. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { createApi } from '../../../dev/api.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { devAudience, devIssuer, prepareTokenIssuer } from '../../../dev/tokens.ts';
import { freePort } from '../../../dev/process/process.ts';
import { run } from '../../../dev/process/run.ts';
import { engineRequest, parseEngineHost, type EngineAddress } from '../../../dev/servers/engine-api.ts';
import { startNats } from '../../../dev/servers/nats.ts';
import { startRedis } from '../../../dev/servers/redis.ts';
import { demoImage } from '../../../dev/servers/registry.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { machineCopy } from '../../integration/deploy/machine-copy.ts';
import { sharedEngine, sharedRegistry, skipWithoutPrivateEngine } from '../../support/servers.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { viewEngine } from '../../host-agent/support/engine.ts';
import { clientFor } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { clusterOf, quickAgent } from '../support/hosts.ts';
import { urlOf } from '../support/programs.ts';
import { prepareBuilder } from './support/buildah.ts';
import { runOnOneMachine } from './support/one-machine.ts';

t.setTimeout(900_000);
const skip = skipWithoutPrivateEngine || (await skipWithoutTools('buildah', 'nft', 'docker-compose'));
const deadlineMs = 120_000;
/** The user of the images (deploy/images/Dockerfile). */
const user = 10001;
/** Bytes that an image adds to its base: packages, and our programs. */
const ownBytesMax = 64 * 1024 * 1024;
const targets = ['gateway', 'actors', 'host-agent', 'tools'] as const;
type Target = (typeof targets)[number];

interface Inspected {
  readonly State: { readonly Status: string; readonly ExitCode: number; readonly Health?: { readonly Status: string } };
}

interface ImageDetails {
  readonly Config: {
    readonly User: string;
    readonly StopSignal?: string;
    readonly Labels: Record<string, string>;
    readonly Healthcheck?: { readonly Test: readonly string[] };
  };
}

interface Container {
  inspect(): Promise<Inspected>;
  logs(): Promise<string>;
  /** As `docker stop` does. @returns the exit code */
  stop(): Promise<number>;
}

/** Runs containers of the images, each confined as deploy/compose/compose.yml confines it. */
function runnerOn(t: Test, address: EngineAddress, images: Readonly<Record<Target, string>>) {
  const call = async <T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> => {
    const { status, text } = await engineRequest(address, method, path, { deadlineMs, body });
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return (path.includes('/logs') || text === '' ? text : JSON.parse(text)) as T;
  };
  const start = async (
    target: Target,
    options: { readonly env?: Record<string, string>; readonly cmd?: readonly string[]; readonly host?: object },
  ): Promise<Container> => {
    const { Id } = await call<{ Id: string }>('POST', '/containers/create', {
      Image: images[target],
      Tty: true,
      Env: Object.entries(options.env ?? {}).map(([name, value]) => `${name}=${value}`),
      ...(options.cmd === undefined ? {} : { Cmd: options.cmd }),
      HostConfig: {
        NetworkMode: 'host',
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        ...options.host,
      },
    });
    t.teardown(() => engineRequest(address, 'DELETE', `/containers/${Id}?force=1&v=1`, { deadlineMs }));
    await call('POST', `/containers/${Id}/start`);
    const inspect = (): Promise<Inspected> => call('GET', `/containers/${Id}/json`);
    return {
      inspect,
      // With a terminal, the answer is the text alone.
      logs: () => call('GET', `/containers/${Id}/logs?stdout=1&stderr=1`),
      stop: async () => {
        await call('POST', `/containers/${Id}/stop?t=40`);
        return (await inspect()).State.ExitCode;
      },
    };
  };
  return {
    start,
    /** Runs a container to its end. */
    end: async (target: Target, cmd: readonly string[], host?: object) => {
      const container = await start(target, { cmd, ...(host === undefined ? {} : { host }) });
      const { State } = await eventually('it ends', container.inspect, ({ State }) => State.Status === 'exited');
      return { code: State.ExitCode, output: await container.logs() };
    },
    tag: (target: Target, name: string) => call('POST', `/images/${images[target]}/tag?repo=${name}&tag=latest`),
    details: (target: Target) => call<ImageDetails>('GET', `/images/${images[target]}/json`),
    layers: (target: Target) => call<{ Size: number }[]>('GET', `/images/${images[target]}/history`),
    pull: async (target: Target): Promise<void> => {
      // The answer is a line for each step.
      const path = `/images/create?fromImage=${images[target]}`;
      const { status, text } = await engineRequest(address, 'POST', path, { deadlineMs });
      if (status !== 200 || text.includes('"error"')) throw new Error(`${path}: ${status} ${text.slice(-500)}`);
    },
  };
}

t.test('images', { skip }, async (t) => {
  const folder = temporaryFolder(t, 'longshore-images-');
  const dockerHost = await sharedEngine(t);
  const registry = await sharedRegistry(t);
  const address = parseEngineHost(dockerHost) as EngineAddress;
  const builder = await prepareBuilder(join(folder, 'buildah'), registry);
  const built: [Target, string][] = [];
  for (const target of targets) built.push([target, await builder.build(target)]);
  const engine = runnerOn(t, address, Object.fromEntries(built) as Record<Target, string>);
  for (const target of targets) await engine.pull(target);

  await t.test('each is small, says what it is, and needs no root', async (t) => {
    for (const target of targets) {
      const { Config } = await engine.details(target);
      t.equal(Config.User, target === 'host-agent' ? '0:0' : `${user}:${user}`, target);
      t.equal(Config.StopSignal, 'SIGTERM', target);
      t.equal(Config.Labels['org.opencontainers.image.title'], `longshore-${target}`);
      t.equal(Config.Labels['org.opencontainers.image.version'], '0.0.0-test');
      t.same(Config.Healthcheck?.Test, target === 'tools' ? ['NONE'] : ['CMD', 'node', 'ready.mjs'], target);
      const layers = (await engine.layers(target)).map(({ Size }) => Size);
      const own = layers.reduce((sum, size) => sum + size, 0) - Math.max(...layers);
      t.ok(own > 0 && own < ownBytesMax, `${target} adds ${own} bytes to its base`);
    }
  });

  await t.test('tools make the keys of a cluster', async (t) => {
    const keys = join(folder, 'keys');
    mkdirSync(keys);
    chownSync(keys, user, user);
    const ran = await engine.end('tools', ['nats-keys', '/keys', 'g1'], { Binds: [`${keys}:/keys`] });
    t.equal(ran.code, 0, ran.output);
    for (const name of ['accounts.conf', 'actors.creds', 'gateway-g1.creds']) t.ok(existsSync(join(keys, name)), name);
  });

  await t.test('setup.sh makes the secrets of compose.yml, and keeps them', async (t) => {
    const copy = join(folder, 'compose');
    cpSync(join(repositoryRoot, 'deploy/compose'), copy, { recursive: true });
    await engine.tag('tools', 'longshore-tools');
    const { env } = await toolHere('dockerd');
    const setup = async (): Promise<Map<string, string>> => {
      const ran = await run(join(copy, 'setup.sh'), ['https://api.example.net', '192.0.2.7'], {
        deadlineMs,
        env: { ...process.env, ...env, DOCKER_HOST: dockerHost },
      });
      t.equal(ran.code, 0, ran.stderr);
      const secrets = join(copy, 'secrets');
      return new Map(readdirSync(secrets).map((name) => [name, readFileSync(join(secrets, name), 'utf8')]));
    };
    const made = await setup();
    const { secrets } = parse(readFileSync(join(copy, 'compose.yml'), 'utf8')) as { readonly secrets: object };
    for (const name of Object.keys(secrets)) t.ok(made.has(name), name);
    t.match(readFileSync(join(copy, '.env'), 'utf8'), /^HOSTS_ACCOUNT=A[A-Z2-7]{55}\nPUBLIC_URL=https:/m);
    t.equal(statSync(join(copy, 'secrets/actors.creds')).mode & 0o777, 0o400);
    const again = await setup();
    // Credentials are signed again, with the same keys.
    for (const name of [
      'operator.seed',
      'hosts-signing.seed',
      'vault-keys',
      'redis-password',
      'redis.acl',
      'metrics-token',
    ])
      t.equal(again.get(name), made.get(name), `${name} is kept`);

    const nats = await toolHere('nats-server');
    // A check makes the folder of the accounts, which must not be this machine's.
    const accounts = (made.get('accounts.conf') ?? '').replace('/var/lib/nats', copy);
    t.match(accounts, join(copy, 'accounts'));
    writeFileSync(join(copy, 'accounts.conf'), accounts);
    const checked = await run(nats.path, ['-t', '--config', join(copy, 'nats-server.conf')], {
      deadlineMs,
      env: nats.env,
    });
    t.equal(checked.code, 0, checked.stderr);
  });

  await t.test('all of it runs on one machine with Compose, as docs/deploy.md says', async (t) => {
    const copy = machineCopy(t);
    const saved = join(copy.folder, 'images.tar');
    for (const target of targets) await engine.tag(target, `longshore-${target}`);
    const { env } = await toolHere('dockerd');
    const names = targets.map((target) => `longshore-${target}`);
    const saving = { deadlineMs, env: { ...process.env, ...env, DOCKER_HOST: dockerHost } };
    t.equal((await run('docker', ['save', '--output', saved, ...names], saving)).code, 0);
    const { code, stdout, stderr } = await runOnOneMachine(copy, saved);
    t.equal(code, 0, stdout + stderr);
    t.match(stdout, /"status":"running"/, 'the agent runs a container');
    t.match(stdout, '["longshore-actors","longshore-forage","longshore-gateway","longshore-host-agent"]');
    t.match(stdout, 'container_firewall_checked', 'the agent has tested its firewall from a container');
    t.match(stdout, '{"data":[]', 'after a restart of all, the API answers');
  });

  await t.test('the agent has its firewall tool', async (t) => {
    const ran = await engine.end('host-agent', ['nft', '--version']);
    t.equal(ran.code, 0, ran.output);
  });

  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const redis = await startRedis({ folder: join(folder, 'redis') });
  t.teardown(() => redis.stop());
  const issuer = await prepareTokenIssuer(join(folder, 'tokens'));
  const files = join(folder, 'files');
  mkdirSync(files);
  /** The path in the containers of a file that the user of the images reads. */
  const given = (path: string): string => {
    const copy = join(files, basename(path));
    copyFileSync(path, copy);
    chownSync(copy, user, user);
    chmodSync(copy, 0o400);
    return `/etc/longshore/${basename(path)}`;
  };
  const binds = { Binds: [`${files}:/etc/longshore:ro`] };
  const [api, ports] = [await freePort(), [await freePort(), await freePort(), await freePort()] as const];

  const actors = await engine.start('actors', {
    env: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: given(nats.actorsCredsFile),
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: given(nats.hostsSigningSeedFile),
      METRICS_PORT: String(ports[0]),
    },
    host: binds,
  });
  const gateway = await engine.start('gateway', {
    env: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: given(nats.gatewayCredsFile),
      ...redis.settings,
      REDIS_PASSWORD_FILE: given(redis.settings.REDIS_PASSWORD_FILE),
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: given(issuer.jwksFile),
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: String(api),
      METRICS_PORT: String(ports[1]),
    },
    host: binds,
  });
  const isReady = async (t: Test, url: string, container: Container): Promise<void> => {
    const look = async (): Promise<string> => {
      const { Status, Health } = (await container.inspect()).State;
      return Status === 'running' ? (Health?.Status ?? 'without a health check') : Status;
    };
    const health = await eventually('its first health', look, (seen) => seen !== 'starting');
    t.equal(health, 'healthy', health === 'healthy' ? url : await container.logs());
    t.equal((await fetch(url)).status, 200, url);
  };

  await t.test('actors and gateway are ready', async (t) => {
    await isReady(t, urlOf(ports[0], '/readyz'), actors);
    await isReady(t, urlOf(api, '/readyz'), gateway);
  });

  await t.test('the agent joins, and runs a container', async (t) => {
    const view = viewEngine(t, dockerHost, await clusterOf({ ...nats, urls: [nats.url] }));
    const baseUrl = urlOf(api, '');
    const operator = await issuer.mint({ tenant: 'ops', subject: 'op', scope: 'operator', lifetimeS: 3600 });
    const { socketPath } = address as Extract<EngineAddress, { kind: 'unix' }>;
    const secrets = join('/dev/shm', basename(folder));
    mkdirSync(secrets);
    t.teardown(() => rmSync(secrets, { recursive: true, force: true }));
    const state = join(folder, 'agent');
    mkdirSync(state);
    const agent = await engine.start('host-agent', {
      env: {
        LONGSHORE_URL: baseUrl,
        LONGSHORE_JOIN_TOKEN: await createApi(baseUrl).joinToken(operator, { key: 'h1', region: 'default' }),
        DOCKER_HOST: dockerHost,
        STATE_DIR: '/var/lib/longshore-agent',
        SECRET_FILES_DIR: secrets,
        METRICS_PORT: String(ports[2]),
        ...quickAgent,
      },
      host: {
        PidMode: 'host',
        CapAdd: ['NET_ADMIN', 'DAC_READ_SEARCH', 'CHOWN', 'KILL'],
        Binds: [`${socketPath}:${socketPath}`, `${state}:/var/lib/longshore-agent`, `${secrets}:${secrets}`],
      },
    });
    await isReady(t, urlOf(ports[2], '/readyz'), agent);
    const tenant = await clientFor(baseUrl, issuer, 'acme');
    const [web] = await tenant.createRunning([
      { name: 'web', registry, ...demoImage, cpu_limit: '0.5', mem_limit: '64m' },
    ]);
    t.ok(web !== undefined && (await view.only(web.id)).State.Running, 'the engine runs it');
    t.equal(await agent.stop(), 0, 'the agent ends cleanly');
  });

  await t.test('they end cleanly when they are stopped', async (t) => {
    t.equal(await gateway.stop(), 0, 'gateway');
    t.equal(await actors.stop(), 0, 'actors');
  });
});
