/** The README's commands, typed in order into an empty shell beside a fresh `npm start`. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { cacheFolder, repositoryRoot } from '../../dev/paths.ts';
import { executablesOf } from '../../dev/fetch/tools.ts';
import { sharedEngine } from '../support/servers.ts';
import { launch } from './npm-start.ts';

const blocks = [...readFileSync(join(repositoryRoot, 'README.md'), 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)].map(
  ([, text = '']) => text,
);
/** What needs root and a second machine: test/e2e/vpn/wireguard.test.ts does it. */
const isForRoot = (block: string): boolean => /^wg-quick /m.test(block);
const [curl, node] = executablesOf(['curl', 'node'], process.env);
const skip = curl === undefined || node === undefined ? 'there is no curl or no node in PATH' : false;

t.test('the README, typed into an empty shell', { skip, timeout: 800_000 }, async (t) => {
  // The shells find the state where the README has it: in the folder they work in.
  const folder = mkdtempSync(join(tmpdir(), 'longshore-readme-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const started = launch(t, {
    ...process.env,
    DOCKER_HOST: await sharedEngine(t),
    LONGSHORE_STATE: join(folder, '.longshore'),
    LONGSHORE_CACHE: cacheFolder(process.env),
  });
  await started.says('Up after');

  /** Of a shell that knows nothing, and stops at a variable that was never set. */
  const typed = async (block: string): Promise<string> =>
    (
      await promisify(execFile)('/bin/sh', ['-euc', block], {
        cwd: folder,
        env: { PATH: process.env['PATH'] },
        timeout: 700_000,
      })
    ).stdout;

  const runnable = blocks.filter((block) => !isForRoot(block));
  t.equal(runnable.length, 2, 'containers, and VPN files');
  const [containers = '', vpn = ''] = runnable;

  const output = await typed(containers);
  t.match(output, /"status":"running"/, 'it waits until the container runs');
  t.match(output, /"stream":"std/, 'lines of its log');
  t.match(output, /^event: |^data: /m, 'and as Server-Sent Events');
  t.match(output, /"caps":|"usage":/, 'the quota');
  t.notMatch(output, /"error":/);

  const made = await typed(vpn);
  t.match(made, /"name":"office"/);
  t.notMatch(made, /"error":/);
  for (const file of ['office.conf', 'laptop.conf']) {
    t.match(readFileSync(join(folder, '.longshore', file), 'utf8'), /^\[Interface\]$[^]*^PrivateKey = /m, file);
  }
  t.match(readFileSync(join(folder, '.longshore/laptop.conf'), 'utf8'), /^Endpoint = 192\.0\.2\.1:\d+$/m);
  t.equal(await started.interrupt(), 0);
});
