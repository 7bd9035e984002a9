/** Builds the images of deploy/images/ with buildah, on a base made of this machine's files. */
import { existsSync, mkdirSync, statfsSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { executablesOf, toolHere } from '../../../../dev/fetch/tools.ts';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { run } from '../../../../dev/process/run.ts';
import { makeBase } from './base.ts';

/** Installing packages and compiling take their time on a busy machine. */
const buildDeadlineMs = 400_000;
/** The type of overlayfs, on which there is no other overlayfs (statfs(2)). */
export const overlayMagic = 0x794c7630;
const base = 'localhost/longshore-base';

export interface Builder {
  /** Builds a target of the Dockerfile and pushes it to the registry. @returns its reference */
  build(target: string): Promise<string>;
}

/** @param registry `127.0.0.1:port`, which takes the images */
export async function prepareBuilder(folder: string, registry: string): Promise<Builder> {
  const [{ path, env }, dockerd] = [await toolHere('buildah'), await toolHere('dockerd')];
  const [runc] = executablesOf(['runc'], dockerd.env);
  if (runc === undefined) throw new Error('there is no runc beside dockerd');
  const file = (name: string, text: string): string => {
    const to = join(folder, name);
    writeFileSync(to, text);
    return to;
  };
  for (const name of ['storage', 'run', 'tmp', 'base']) mkdirSync(join(folder, name), { recursive: true });
  const policy = file('policy.json', JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }));
  const driver = statfsSync(folder).type === overlayMagic ? 'vfs' : 'overlay';
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', driver];
  const buildah = async (...args: readonly string[]): Promise<void> => {
    // Its mounts end with a mount namespace of its own.
    const ran = await run('unshare', ['--mount', path, ...storage, ...args], {
      deadlineMs: buildDeadlineMs,
      cwd: repositoryRoot,
      env: {
        ...process.env,
        ...env,
        TMPDIR: join(folder, 'tmp'),
        CONTAINERS_CONF: file('containers.conf', ''),
        CONTAINERS_REGISTRIES_CONF: file('registries.conf', ''),
      },
    });
    if (ran.code !== 0) throw new Error(`buildah ${args.join(' ')}: ${(ran.stdout + ran.stderr).slice(-3000)}`);
  };
  const bud = (...args: readonly string[]): Promise<void> =>
    buildah(
      ...['bud', '--signature-policy', policy, '--format', 'docker', '--layers'],
      // The network of this machine, from which npm installs.
      ...['--isolation', 'oci', '--runtime', runc, '--network', 'host', ...args],
    );
  const npmrc = join(homedir(), '.npmrc');
  const secrets = existsSync(npmrc) ? ['--secret', `id=npmrc,src=${npmrc}`] : [];
  const root = join(folder, 'base');
  const variables = Object.entries(await makeBase(root)).map(([name, value]) => `ENV ${name}=${value}`);
  const baseFile = file('Dockerfile', ['FROM scratch', 'COPY . /', ...variables].join('\n'));
  await bud('--file', baseFile, '--tag', base, root);
  return {
    build: async (target) => {
      const image = `localhost/longshore-${target}`;
      const given = { BASE: base, VERSION: '0.0.0-test', REVISION: 'none' };
      const options = Object.entries(given).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]);
      await bud(...options, ...secrets, '--target', target, '--tag', image, '--file', 'deploy/images/Dockerfile', '.');
      const reference = `${registry}/longshore/${target}:image-test`;
      const pushed = ['--signature-policy', policy, '--disable-compression', '--tls-verify=false'];
      await buildah('push', ...pushed, image, `docker://${reference}`);
      return reference;
    },
  };
}
