import t from 'tap';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { countProcesses } from '../../../host-agent/network/port-proxy.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('processes are counted by name', async (t) => {
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
  t.equal(await countProcesses('docker-proxy', proc), 2);
  t.equal(await countProcesses('docker-proxy', join(proc, 'nowhere')), 0);
});
