/**
 * Lets several engines share one firewall. All of them use the same chains (DOCKER,
 * DOCKER-ISOLATION-STAGE-1 and -2), and a dockerd empties and deletes these chains when it starts,
 * along with the rules of every other engine. Measured with 20.10: after that, networks of an
 * engine that was already running could reach each other. So our dockerd gets an `iptables` that
 * ignores commands to empty or delete shared chains and passes on all others. The engine's own
 * stale rules are removed beforehand, found by the names of its bridges (engine-sweep.ts). An
 * engine that is not ours still empties the chains when it starts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { executablesOf } from '../fetch/tools.ts';

const names = ['iptables', 'ip6tables'] as const;

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * The script that replaces the program at `path`. dockerd continues when these two commands fail or
 * do nothing.
 */
export const gentleScript = (path: string): string => `#!/bin/sh
# Written by dev/servers/engine-firewall.ts: shared chains are neither emptied nor deleted.
for word in "$@"; do
  case "$before $word" in
    '-F DOCKER'* | '-X DOCKER'* | '--flush DOCKER'* | '--delete-chain DOCKER'*) exit 0 ;;
  esac
  before=$word
done
exec ${quoted(path)} "$@"
`;

/** Writes the scripts to `folder` and returns the environment for a dockerd that uses them. */
export function withGentleIptables(folder: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  mkdirSync(folder, { recursive: true });
  for (const [index, path] of executablesOf(names, env).entries()) {
    if (path !== undefined) writeFileSync(join(folder, names[index]!), gentleScript(path), { mode: 0o755 });
  }
  return { ...env, PATH: [folder, env['PATH'] ?? ''].join(delimiter) };
}
