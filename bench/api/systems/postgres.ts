/** A durable PostgreSQL server on a Unix socket, with sensible memory for a small machine. */
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startServer, type Server } from '../../../dev/process/process.ts';
import { run } from '../../../dev/process/run.ts';
import { executablesOf } from '../../../dev/fetch/tools.ts';
import type { Ground } from '../ground.ts';

export interface Postgres {
  /** Folder of the server's socket. */
  readonly host: string;
  readonly version: string;
  readonly server: Server;
}

const reachDeadlineMs = 5_000;
const initDeadlineMs = 60_000;
const configuration = [
  "listen_addresses = ''",
  'fsync = on',
  'synchronous_commit = on',
  'full_page_writes = on',
  'max_connections = 60',
  'shared_buffers = 256MB',
  'effective_cache_size = 1GB',
  'wal_buffers = 16MB',
  // No checkpoint during a measurement: the other systems have none.
  'max_wal_size = 4GB',
  'checkpoint_timeout = 30min',
  'jit = off',
  // Unpacked packages may lack time zone files.
  "timezone = 'GMT'",
  "log_timezone = 'GMT'",
];

/** PostgreSQL refuses to run as root. */
const nobody = 65534;
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'];

async function requireReach(path: string): Promise<void> {
  const [command = '', ...args] = [...asNobody, 'test', '-x', path];
  const { code } = await run(command, args, { deadlineMs: reachDeadlineMs });
  if (code === 0) return;
  throw new Error(
    `PostgreSQL refuses to run as root, and the user nobody cannot reach ${path}: run the benchmark as another user, or set LONGSHORE_CACHE to a folder that every user can enter`,
  );
}

export async function startPostgres({ bench, scope }: Ground): Promise<Postgres> {
  const tool = await bench.tool('postgres');
  const [initdb] = executablesOf(['initdb'], tool.env);
  if (initdb === undefined) throw new Error('no initdb beside postgres');
  const folder = join(bench.folder, 'pg');
  const [data, socket] = [join(folder, 'data'), join(folder, 'socket')];
  const isRoot = process.getuid?.() === 0;
  const enter = isRoot ? asNobody : [];
  if (isRoot) await requireReach(initdb);
  for (const path of [folder, data, socket]) {
    mkdirSync(path, { mode: 0o700 });
    if (isRoot) chownSync(path, nobody, nobody);
  }

  const env = { ...tool.env, LC_ALL: 'C' };
  const [command = initdb, ...args] = [...enter, initdb, '-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8'];
  const made = await run(command, args, { deadlineMs: initDeadlineMs, env, cwd: folder });
  if (made.code !== 0) throw new Error(`initdb: ${made.stdout}${made.stderr}`);
  writeFileSync(join(data, 'postgresql.conf'), `${configuration.join('\n')}\n`);

  const [program = tool.path, ...options] = [...enter, tool.path, '-D', data, '-k', socket];
  const server = await startServer({
    name: 'postgres',
    command: program,
    args: options,
    env,
    cwd: folder,
    logFile: join(bench.folder, 'postgres.log'),
    ready: async () => Promise.resolve(existsSync(join(socket, '.s.PGSQL.5432'))),
    readyDeadlineMs: 30_000,
    stopGraceMs: 20_000,
  });
  scope.teardown(() => server.stop());
  return { host: socket, version: tool.version, server };
}
