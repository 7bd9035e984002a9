/** The script of docs/vpn.md for the VPN server, run in a namespace as an operator runs it. */
import { connect, createServer } from 'node:net';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run, type Ran } from '../../../dev/process/run.ts';
import { skipWithoutNetwork, type Joined } from './netns.ts';
import type { VpnRig } from './rig.ts';
import type { ToolName } from '../../../dev/fetch/tool-table.ts';

/** Reason to skip a test that runs the script on this machine, or false. */
export async function skipWithoutScript(...needed: readonly ToolName[]): Promise<string | false> {
  const curl = await run('curl', ['--version'], { deadlineMs: 10_000 }).catch(() => undefined);
  return (await skipWithoutNetwork(...needed)) || (curl?.code !== 0 && 'the script of docs/vpn.md needs curl');
}

/** The script as an operator would copy it. */
function documentedScript(): string {
  const page = readFileSync(join(repositoryRoot, 'docs/vpn.md'), 'utf8');
  const [, script] = /^cat > \/usr\/local\/sbin\/longshore-vpn <<'EOF'\n([^]*?)^EOF$/m.exec(page) ?? [];
  if (script === undefined) throw new Error('docs/vpn.md has no script for the VPN server');
  return script;
}

/**
 * Returns a function that runs the documented script on the server. That machine reaches the
 * gateway through a socket, for which curl is configured. Only that machine sees the files that the
 * script writes.
 */
export async function prepareScript(
  t: Test,
  rig: VpnRig,
  server: Joined,
  { network = 'office', env = {} }: { network?: string; env?: Readonly<Record<string, string>> } = {},
): Promise<() => Promise<Ran>> {
  const socket = join(server.folder, 'api');
  const { hostname, port } = new URL(rig.baseUrl);
  const proxy = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => proxy.listen(socket, resolve));
  t.teardown(() => proxy.close());
  const own = (name: string): string => {
    const path = join(server.folder, name);
    mkdirSync(path, { recursive: true });
    return path;
  };
  await server.must('mount', ['--bind', own('lib'), '/var/lib']);
  const layers = `lowerdir=/etc,upperdir=${own('etc')},workdir=${own('work')}`;
  await server.must('mount', ['-t', 'overlay', 'longshore', '-o', layers, '/etc']);
  const [script, settings] = [join(server.folder, 'longshore-vpn'), join(server.folder, 'env')];
  writeFileSync(script, documentedScript(), { mode: 0o755 });
  writeFileSync(settings, `API=${rig.baseUrl}\nTOKEN=${rig.operator.token}\nNETWORK=${network}\n`);
  writeFileSync(join(server.folder, '.curlrc'), `unix-socket = "${socket}"\n`);
  return () => server.run('bash', [script], { env: { ...env, LONGSHORE_VPN_ENV: settings, CURL_HOME: server.folder } });
}
