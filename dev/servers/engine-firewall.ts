/**
 * Several engines in one firewall. All of them use the same chains (DOCKER,
 * DOCKER-ISOLATION-STAGE-1 and -2), and a dockerd that starts empties and deletes these chains,
 * with every other engine's rules in them: measured with 20.10, networks of an engine that ran
 * already reached each other from then on. So our dockerd is given an `iptables` that leaves shared
 * chains as they are; everything else it hands on. Rules of its own that are out of date are
 * removed beforehand, by the names of its bridges (engine-sweep.ts). An engine that is not ours
 * still empties the chains when it starts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { executablesOf } from '../fetch/tools.ts';

const names = ['iptables', 'ip6tables'] as const;

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/**
 * A script in place of the program at `path`. dockerd goes on when these two commands fail or do
 * nothing.
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

/** The environment for a dockerd that shares its firewall. The scripts are written to `folder`. */
export function withGentleIptables(folder: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  mkdirSync(folder, { recursive: true });
  for (const [index, path] of executablesOf(names, env).entries()) {
    if (path !== undefined) writeFileSync(join(folder, names[index]!), gentleScript(path), { mode: 0o755 });
  }
  return { ...env, PATH: [folder, env['PATH'] ?? ''].join(delimiter) };
}
