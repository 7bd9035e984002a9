/**
 * The smallest base of an image that has what deploy/images/Dockerfile asks for: Node with npm, a
 * shell and nft, copied from this machine with the libraries that they load.
 */
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { executablesOf, toolHere } from '../../../../dev/fetch/tools.ts';
import { run } from '../../../../dev/process/run.ts';

/** The dynamic linker and the libraries of a program, as ldd(1) finds them. */
async function librariesOf(program: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const ran = await run('ldd', [program], { deadlineMs: 20_000, env });
  if (ran.stdout.includes('not a dynamic executable') || ran.stderr.includes('not a dynamic executable')) return [];
  if (ran.code !== 0) throw new Error(`ldd ${program}: ${ran.stderr}`);
  return [...ran.stdout.matchAll(/(?:=> |^\s+)(\/\S+)/gm)].map(([, path = '']) => path);
}

function putFile(root: string, from: string, to: string): void {
  mkdirSync(dirname(join(root, to)), { recursive: true });
  copyFileSync(realpathSync(from), join(root, to));
  chmodSync(join(root, to), 0o755);
}

/** Copies a program to a path below `root`, and the libraries that it loads to `usr/lib`. */
export async function putProgram(
  root: string,
  program: string,
  { to, env }: { readonly to: string; readonly env: NodeJS.ProcessEnv },
): Promise<void> {
  putFile(root, program, to);
  for (const library of await librariesOf(program, env)) {
    // The path of the dynamic linker is in the program.
    putFile(root, library, basename(library).startsWith('ld-') ? library : `usr/lib/${basename(library)}`);
  }
}

/**
 * Fills a folder with the base.
 * @returns the variables of its environment
 */
export async function makeBase(root: string): Promise<Record<string, string>> {
  const put = (from: string, to: string): void => putFile(root, from, to);
  for (const folder of ['etc', 'root', 'tmp']) mkdirSync(join(root, folder), { recursive: true });
  chmodSync(join(root, 'tmp'), 0o1777);

  put((await toolHere('busybox')).path, 'bin/busybox');
  mkdirSync(join(root, 'usr/bin'), { recursive: true });
  symlinkSync('busybox', join(root, 'bin/sh'));
  symlinkSync('/bin/busybox', join(root, 'usr/bin/env'));

  const nft = await toolHere('nft');
  const programs = { node: { path: process.execPath, env: process.env }, nft };
  for (const [name, { path, env }] of Object.entries(programs)) {
    await putProgram(root, path, { to: `usr/bin/${name}`, env });
  }

  const [npm] = executablesOf(['npm'], process.env);
  if (npm === undefined) throw new Error('there is no npm on PATH');
  const packaged = dirname(dirname(realpathSync(npm)));
  cpSync(packaged, join(root, 'usr/lib/node_modules/npm'), { recursive: true, dereference: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/bin/npm'));
  if (!existsSync(join(root, 'usr/bin', readlinkSync(join(root, 'usr/bin/npm'))))) throw new Error(`${npm} is no npm`);

  const variables = { PATH: '/usr/bin:/bin', LD_LIBRARY_PATH: '/usr/lib' };
  const certificates = process.env['NODE_EXTRA_CA_CERTS'];
  if (certificates === undefined || certificates === '') return variables;
  // A proxy of this machine may sign what npm fetches.
  put(certificates, 'etc/ssl/certs/extra.pem');
  return { ...variables, NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/extra.pem' };
}
