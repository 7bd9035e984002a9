import { join } from 'node:path';
import t from 'tap';
import { hasSwap, judgeSecretFolder, mayChown, seeSecretFolder } from '../../../host-agent/doctor/secret-files.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { mountSmall, skipWithoutMounts } from '../support/disk.ts';

const well = { path: '/run/x', isInMemory: true, isWritable: true, mayChown: true, hasSwap: false };

t.test('findings about the folder, and what to do', (t) => {
  for (const [changes, isEngineHere, verdict, says] of [
    [{}, true, 'ok', /in memory/],
    [{}, false, 'ok', /off/],
    [undefined, true, 'warn', /cannot see/],
    [{ isInMemory: false }, true, 'warn', /no tmpfs/],
    [{ isWritable: false }, true, 'warn', /cannot write/],
    [{ mayChown: false }, true, 'warn', /other users/],
    [{ hasSwap: true }, true, 'warn', /swap/],
  ] as const) {
    const facts = changes === undefined ? undefined : { ...well, ...changes };
    t.match(judgeSecretFolder(facts, '/run/x', isEngineHere), { verdict, says }, JSON.stringify(changes));
  }
  t.end();
});

t.test('the kernel’s facts about this process and machine', (t) => {
  t.ok(mayChown('Name:\tnode\nCapEff:\t000001ffffffffff\n'));
  t.ok(mayChown('CapEff:\t0000000000000001'));
  t.notOk(mayChown('CapPrm:\t0000000000000001\nCapEff:\t0000000000001000\n'));
  t.notOk(mayChown(''));
  t.notOk(hasSwap('Filename\tType\tSize\n'));
  t.ok(hasSwap('Filename\tType\tSize\n/dev/sda2 partition 1024\n'));
  t.notOk(hasSwap(''));
  t.end();
});

t.test('the nearest folder that exists', { skip: skipWithoutMounts }, async (t) => {
  const folder = temporaryFolder(t);
  t.match(await seeSecretFolder(join(folder, 'a', 'b')), { path: folder, isInMemory: false });
  mountSmall(t, join(folder, 'tmpfs'), 1);
  t.match(await seeSecretFolder(join(folder, 'tmpfs', 'a')), { path: join(folder, 'tmpfs'), isInMemory: true });
});
