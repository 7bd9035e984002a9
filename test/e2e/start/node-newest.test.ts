/**
 * The HTTP contract on the newest uWebSockets.js, whose binary needs a newer C library than Debian
 * 12 has: the loader of that library starts Node.
 */
import { dirname, join } from 'node:path';
import t from 'tap';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { nodeFolder, type NodeLine } from '../../../dev/fetch/node.ts';
import { cacheFolder, repositoryRoot } from '../../../dev/paths.ts';
import { run } from '../../../dev/process/run.ts';
import { packageOf, pinnedBinaries } from '../../../gateway/http/engine/uws-binary.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutTools } from '../../support/tools.ts';

const deadlineMs = 600_000;
const files = [
  'gateway/http/engine/uws-cork',
  'integration/gateway/http',
  'integration/gateway/contract',
  'integration/gateway/websocket-frames',
  'attacks/http/protocol-forms',
];

const skip = await skipWithoutTools('ld-linux-x86-64.so.2');
t.test('the contract on the newest engine', { timeout: 2 * deadlineMs, skip }, async (t) => {
  const { path: loader } = await toolHere('ld-linux-x86-64.so.2');
  for (const line of [24, 26] satisfies NodeLine[]) {
    const node = join(await nodeFolder(line, cacheFolder(process.env)), 'node');
    const folder = temporaryFolder(t);
    const own = `linux-x64-${line}`;
    const wanted = `${packageOf(own)}@${pinnedBinaries[own]?.release}`;
    const installed = await run(
      'npm',
      ['install', '--prefix', folder, '--force', '--no-save', '--loglevel=error', wanted],
      {
        deadlineMs,
      },
    );
    t.equal(installed.code, 0, installed.stderr);
    const env = { ...process.env, NODE_PATH: join(folder, 'node_modules') };
    for (const file of files) {
      const test = join(repositoryRoot, 'dist/test', `${file}.test.js`);
      const ended = await run(loader, ['--library-path', dirname(loader), node, '--enable-source-maps', test], {
        env,
        deadlineMs,
      });
      t.equal(ended.code, 0, `${file} on Node ${line}: ${ended.stdout.slice(-3000)}${ended.stderr.slice(-1000)}`);
    }
  }
});
