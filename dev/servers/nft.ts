/** An `nft` on the PATH of an agent, where the tool was fetched and is not installed. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { run } from '../process/run.ts';
import type { ServerTool } from '../fetch/tools.ts';

const deadlineMs = 10_000;

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** @returns the PATH that finds it first. The script is written to `folder`. */
export function pathWithNft(folder: string, { path, env }: ServerTool, pathBefore: string): string {
  mkdirSync(folder, { recursive: true });
  const libraries = env['LD_LIBRARY_PATH'];
  const set = libraries === undefined ? '' : `LD_LIBRARY_PATH=${quoted(libraries)} `;
  writeFileSync(join(folder, 'nft'), `#!/bin/sh\n${set}exec ${quoted(path)} "$@"\n`, { mode: 0o755 });
  return [folder, pathBefore].join(delimiter);
}

/**
 * An agent leaves its rules behind, since its containers go on; whoever ends the containers takes
 * them away.
 */
export async function removeFirewall({ path, env }: ServerTool, table: string): Promise<void> {
  await run(path, ['delete', 'table', 'inet', table], { deadlineMs, env });
}
