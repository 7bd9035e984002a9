/**
 * Longshore as `npm start` runs it, but with an idle host: one actors process, and a gateway for
 * each HTTP engine and log level.
 */
import { join } from 'node:path';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { freePort, type Server } from '../../../dev/process/process.ts';
import { startProgram } from '../../../dev/stack/programs.ts';
import { startRedis } from '../../../dev/servers/redis.ts';
import { devAudience, devIssuer } from '../../../dev/tokens.ts';
import type { Ground, Store, System } from '../ground.ts';
import { startIdleHost, type IdleHost } from '../idle-host.ts';

export interface Longshore extends Store {
  readonly host: IdleHost;
  readonly nats: Nats;
  /** Process ids of what serves the first system. */
  readonly parts: Readonly<Record<'gateway' | 'actors' | 'nats-server', number>>;
}

const loopback = (port: number, path = ''): string => `http://127.0.0.1:${port}${path}`;
const unlimited = '10000000';

export async function startLongshore(ground: Ground): Promise<Longshore> {
  const { bench, scope } = ground;
  const folder = join(bench.folder, 'longshore');
  const owned = <T extends { stop(): Promise<unknown> }>(part: T): T => {
    scope.teardown(() => part.stop());
    return part;
  };
  const natsTool = await bench.tool('nats-server');
  const nats = owned(await startNats({ tool: natsTool, dir: join(folder, 'nats') }));
  const redis = owned(await startRedis({ tool: await bench.tool('redis-server'), folder: join(folder, 'redis') }));

  const actorsPort = await freePort();
  const actors = {
    name: 'actors' as const,
    settings: {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: nats.actorsCredsFile,
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      // Allows the unlimited capacity of the idle host.
      HOST_MAX_CPU_MILLIS: '1000000000000',
      HOST_MAX_MEM_BYTES: '1000000000000000',
      HOST_MAX_CONTAINERS: '1000000000',
      METRICS_PORT: String(actorsPort),
    },
    readyUrl: loopback(actorsPort, '/readyz'),
    logFile: join(folder, 'actors.log'),
  };
  const actorsServer = owned(await startProgram(actors, bench.env));

  const startGateway = async (
    name: string,
    engine: 'uws' | 'node',
    level: 'info' | 'warn',
  ): Promise<System & { readonly pid: number }> => {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const settings = {
      NATS_URLS: nats.url,
      NATS_CREDS_FILE: nats.gatewayCredsFile,
      HTTP_PORT: String(port),
      HTTP_ENGINE: engine,
      ...redis.settings,
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: ground.jwksFile,
      RATE_LIMIT_TENANT_PER_SECOND: unlimited,
      RATE_LIMIT_TENANT_BURST: unlimited,
      LOG_LEVEL: level,
      METRICS_PORT: String(metricsPort),
    };
    const logFile = join(folder, `gateway-${engine}-${level}.log`);
    const gateway: Server = await startProgram(
      { name: 'gateway', settings, readyUrl: loopback(port, '/readyz'), logFile },
      bench.env,
    );
    owned(gateway);
    return { name, baseUrl: loopback(port), logsRequests: level === 'info', pid: gateway.pid };
  };
  const uws = await startGateway('Longshore', 'uws', 'info');
  const node = await startGateway('Longshore, node:http', 'node', 'info');
  const quiet = await startGateway('Longshore, no request log', 'uws', 'warn');
  return {
    name: 'Longshore',
    systems: [uws, node, quiet],
    host: await startIdleHost(uws.baseUrl, ground),
    nats,
    parts: { gateway: uws.pid, actors: actorsServer.pid, 'nats-server': nats.server().pid },
    pid: nats.server().pid,
    remark: `Longshore: one gateway, one actors process, one nats-server ${natsTool.version} (sync_interval: always, so JetStream syncs each write before it acknowledges it), Redis ${(await bench.tool('redis-server')).version}. Containers are placed on a host that runs nothing.`,
  };
}
