/** Checks metrics with `promtool check metrics`. */
import { spawnSync } from 'node:child_process';
import { toolHere } from '../../dev/fetch/tools.ts';

/** The findings of promtool; empty if it has none. */
export async function promtoolFindings(scrape: string): Promise<string> {
  const { path, env } = await toolHere('promtool');
  const { status, stdout, stderr, error } = spawnSync(path, ['check', 'metrics'], {
    input: scrape,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 30_000,
  });
  if (error !== undefined) throw error;
  return status === 0 ? stdout + stderr : `${stdout}${stderr}exit ${status}`;
}
