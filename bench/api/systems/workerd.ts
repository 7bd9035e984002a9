/** workerd with a Durable Object for each tenant (peers/durable-objects.ts). */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { repositoryRoot } from '../../../dev/paths.ts';
import { freePort, startServer } from '../../../dev/process/process.ts';
import { devAudience, devIssuer } from '../../../dev/tokens.ts';
import type { Ground, Store } from '../ground.ts';

interface Workerd {
  readonly default: string;
  readonly version: string;
  readonly compatibilityDate: string;
}

const { default: program, version, compatibilityDate } = createRequire(import.meta.url)('workerd') as Workerd;

const text = (value: string): string => JSON.stringify(value);

const configurationOf = (port: number, jwk: string, data: string): string => `
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "api", worker = .api),
    (name = "data", disk = (path = ${text(data)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "api")],
);

const api :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = ${text(compatibilityDate)},
  durableObjectNamespaces = [
    (className = "Tenant", uniqueKey = "tenant", enableSql = true, preventEviction = true),
  ],
  durableObjectStorage = (localDisk = "data"),
  bindings = [
    (name = "tenants", durableObjectNamespace = "Tenant"),
    (name = "jwk", json = ${text(jwk)}),
    (name = "issuer", text = ${text(devIssuer)}),
    (name = "audience", text = ${text(devAudience)}),
  ],
);
`;

export async function startWorkerd({ bench, scope, jwksFile }: Ground): Promise<Store> {
  const folder = join(bench.folder, 'workerd');
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true });
  copyFileSync(join(repositoryRoot, 'dist/bench/peers/durable-objects.js'), join(folder, 'worker.js'));
  const { keys } = JSON.parse(readFileSync(jwksFile, 'utf8')) as { keys: object[] };
  const port = await freePort();
  const configuration = join(folder, 'config.capnp');
  writeFileSync(configuration, configurationOf(port, JSON.stringify(keys[0]), data));
  const baseUrl = `http://127.0.0.1:${port}`;
  const server = await startServer({
    name: 'workerd',
    command: program,
    args: ['serve', configuration],
    env: bench.env,
    cwd: folder,
    logFile: join(folder, 'workerd.log'),
    ready: async (signal) => (await fetch(baseUrl, { signal })).status === 401,
    readyDeadlineMs: 30_000,
    stopGraceMs: 5_000,
  });
  scope.teardown(() => server.stop());
  return {
    name: 'workerd Durable Objects',
    systems: [{ name: 'workerd Durable Objects', baseUrl, logsRequests: true }],
    pid: server.pid,
    remark: `workerd ${version}: one process, a Durable Object with SQLite (localDisk) for each tenant; no placement.`,
  };
}
