/** Puts a fetched `nft` on the PATH of an agent, and removes the rules that an agent leaves. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from '../process/run.ts';
import type { ServerTool } from '../fetch/tools.ts';

const deadlineMs = 10_000;

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Writes a wrapper script to `folder` and returns a PATH on which `nft` is that script. */
export function pathWithNft(folder: string, { path, env }: ServerTool, pathBefore: string): string {
  mkdirSync(folder, { recursive: true });
  const libraries = env['LD_LIBRARY_PATH'];
  const set = libraries === undefined ? '' : `LD_LIBRARY_PATH=${quoted(libraries)} `;
  writeFileSync(join(folder, 'nft'), `#!/bin/sh\n${set}exec ${quoted(path)} "$@"\n`, { mode: 0o755 });
  return [folder, pathBefore].join(delimiter);
}

/**
 * Deletes an agent's firewall table. The agent leaves it when it stops, because its containers keep
 * running, so it is removed once the containers have been stopped.
 */
export async function removeFirewall({ path, env }: ServerTool, table: string): Promise<void> {
  await run(path, ['delete', 'table', 'inet', table], { deadlineMs, env });
}
