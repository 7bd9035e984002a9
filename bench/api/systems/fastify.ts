/** Fastify + PostgreSQL (peers/fastify-postgres.ts): API processes with and without request log. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { repositoryRoot } from '../../../dev/paths.ts';
import { freePort, startServer } from '../../../dev/process/process.ts';
import { devAudience, devIssuer } from '../../../dev/tokens.ts';
import type { Ground, Store, System } from '../ground.ts';
import { startPostgres } from './postgres.ts';

/** For each of two processes, together below max_connections. Twelve were not faster. */
const poolConnections = 20;

const { version: fastifyVersion } = createRequire(import.meta.url)('fastify/package.json') as { version: string };

export async function startFastify(ground: Ground): Promise<Store> {
  const { bench, scope } = ground;
  const postgres = await startPostgres(ground);
  const start = async (name: string, level: 'info' | 'warn'): Promise<System> => {
    const port = await freePort();
    const baseUrl = `http://127.0.0.1:${port}`;
    const server = await startServer({
      name: 'fastify',
      command: process.execPath,
      args: [join(repositoryRoot, 'dist/bench/peers/fastify-postgres.js')],
      env: {
        ...bench.env,
        NODE_ENV: 'production',
        PORT: String(port),
        PGHOST: postgres.host,
        POOL: String(poolConnections),
        JWKS_FILE: ground.jwksFile,
        AUTH_ISSUER: devIssuer,
        AUTH_AUDIENCE: devAudience,
        LOG_LEVEL: level,
      },
      cwd: bench.folder,
      logFile: join(bench.folder, `fastify-${level}.log`),
      ready: async (signal) => (await fetch(baseUrl, { signal })).status === 401,
      readyDeadlineMs: 30_000,
      stopGraceMs: 5_000,
    });
    scope.teardown(() => server.stop());
    return { name, baseUrl, logsRequests: level === 'info' };
  };
  const logged = await start('Fastify + PostgreSQL', 'info');
  const quiet = await start('Fastify + PostgreSQL, no request log', 'warn');
  return {
    name: 'Fastify + PostgreSQL',
    systems: [logged, quiet],
    pid: postgres.server.pid,
    remark: `Fastify ${fastifyVersion} and PostgreSQL ${postgres.version} (fsync = on, synchronous_commit = on, shared_buffers = 256MB, unix socket): one process, a pool of ${poolConnections} connections, prepared statements. A create is one statement (counter of the tenant, container, event), which takes half the CPU time of BEGIN … COMMIT.`,
  };
}
