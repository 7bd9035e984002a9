/** OpenSSL and NSS, run with arguments. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { toolHere } from '../../../../dev/fetch/tools.ts';

export interface Ran {
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

const runWith =
  (path: string, env: NodeJS.ProcessEnv) =>
  (...args: readonly string[]): Ran => {
    const { status, stdout, stderr, error } = spawnSync(path, args, {
      env: { ...env, LC_ALL: 'C.UTF-8' },
      encoding: 'utf8',
      timeout: 30_000,
      maxBuffer: 16 * 1024 * 1024,
    });
    if (error !== undefined) throw error;
    return { ok: status === 0, stdout, stderr };
  };

export async function openssl(): Promise<(...args: readonly string[]) => Ran> {
  const { path, env } = await toolHere('openssl');
  return runWith(path, env);
}

/** NSS, which Firefox and Thunderbird import with. */
export async function nss(): Promise<Record<'pk12util' | 'certutil', (...args: readonly string[]) => Ran>> {
  const { path, env } = await toolHere('pk12util');
  return { pk12util: runWith(path, env), certutil: runWith(join(path, '../certutil'), env) };
}
