/**
 * A copy of this machine, in which a test may do what an operator does: its files are the lower
 * layer of an overlay, and mounts, networks and processes have namespaces of their own.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { repositoryRoot, shortTemporaryRoot } from '../../../dev/paths.ts';
import { run, type Ran } from '../../../dev/process/run.ts';

export interface MachineCopy {
  /** A folder of this machine; a copy does not have it. It has `disk`, which is on a real disk. */
  readonly folder: string;
  /** Makes an executable file in the folder. @returns its path */
  file(name: string, text: string): string;
  /**
   * Runs a script in a copy, as root, with the repository at /opt/longshore and an empty /run.
   * `prepare` are commands in the folder above the copy's `root`, before it is entered.
   */
  run(script: string, options: RunOptions): Promise<Ran>;
}

interface RunOptions {
  readonly prepare: readonly string[];
  readonly deadlineMs: number;
  /**
   * Variables of the script; by default those of a person's shell: tap sets some for every process.
   */
  readonly env?: Readonly<Record<string, string>>;
}

export function machineCopy(t: Test): MachineCopy {
  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-copy-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const name of ['layers', 'disk']) mkdirSync(join(folder, name));
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    chmodSync(path, 0o755);
    return path;
  };
  return {
    folder,
    file,
    run: async (script, { prepare, deadlineMs, env = {} }) => {
      const ip = await toolHere('ip').catch(() => toolHere('busybox'));
      const link = ip.name === 'busybox' ? `${ip.path} ip` : ip.path;
      const variables = { PATH: process.env['PATH'] ?? '', HOME: '/root', USER: 'root', ...env };
      const given = Object.entries(variables).map(([name, value]) => `${name}="${value}"`);
      const enter = file(
        'enter.sh',
        [
          'set -euo pipefail',
          `${link} link set lo up`,
          // An upper layer cannot lie within the lower one.
          `mount -t tmpfs tmpfs ${folder}/layers`,
          `mkdir ${folder}/layers/{upper,work,root}`,
          `cd ${folder}/layers`,
          'mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root',
          'mount -t proc proc root/proc && mount --rbind /dev root/dev && mount -t tmpfs tmpfs root/tmp',
          // Removes parts of an installation that this machine itself has.
          'rm -rf root/etc/{nats,longshore} root/var/lib/{nats,longshore-agent} root/root/longshore-*',
          'for user in nats longshore longshore-agent; do chroot root userdel $user 2>/dev/null || true; done',
          'mkdir -p root/opt/longshore root/run && mount -t tmpfs tmpfs root/run',
          `mount --bind ${repositoryRoot} root/opt/longshore`,
          `[ -x /usr/bin/node ] || install -m 0755 ${process.execPath} root/usr/bin/node`,
          `install -D -m 0755 ${file('script.sh', script)} root${folder}/script.sh`,
          ...prepare,
          // Not chroot: an engine in the copy takes the root of its mount namespace for its own.
          'mkdir -p root/mnt && cd root && pivot_root . mnt && umount --lazy /mnt && cd /',
          `exec env -i ${given.join(' ')} /bin/bash ${folder}/script.sh`,
        ].join('\n'),
      );
      const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child'];
      return run('unshare', [...namespaces, 'bash', enter], { deadlineMs });
    },
  };
}

/** The blocks of commands of a section of a page, by its heading with its marks (`## Hosts`). */
export function blocksBelow(page: string, heading: string): readonly string[] {
  const [, part = ''] = page.split(`\n${heading}\n`);
  const [own = ''] = part.split(/^#{2,3} /m);
  return [...own.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);
}

/** `issuer.mjs` of docs/deploy.md. */
export const issuerOf = (page: string): string => /^```js\n([^]*?)^```$/m.exec(page)?.[1] ?? '';
