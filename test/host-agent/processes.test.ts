import t from 'tap';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processesOf } from '../../host-agent/processes.ts';
import { temporaryFolder } from '../support/folder.ts';

t.test('processes are found by name', async (t) => {
  const proc = temporaryFolder(t);
  for (const [pid, comm] of [
    ['1', 'init'],
    ['20', 'docker-proxy'],
    ['300', 'docker-proxy'],
    ['self', 'docker-proxy'],
  ] as const) {
    mkdirSync(join(proc, pid));
    writeFileSync(join(proc, pid, 'comm'), `${comm}\n`);
  }
  mkdirSync(join(proc, '4000'));
  t.same((await processesOf('docker-proxy', proc)).sort(), ['20', '300']);
  t.same(await processesOf('docker-proxy', join(proc, 'nowhere')), []);
});
