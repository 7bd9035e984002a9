import { join } from 'node:path';
import t from 'tap';
import { judgeEngineDisk, judgeStateDisk, seeDisk, type DiskFacts } from '../../../host-agent/doctor/disk.ts';
import { temporaryFolder } from '../../support/folder.ts';

const GiB = 1024 ** 3;
const fill = { usedPercent: 50, freeBytes: 5 * GiB };
const disk = (more: Partial<DiskFacts> = {}): DiskFacts => ({
  path: '/d',
  freeInodes: 1000,
  fill,
  notWritable: undefined,
  ...more,
});

const states: readonly [name: string, facts: DiskFacts | undefined, expected: object][] = [
  ['a disk with room', disk(), { verdict: 'ok', says: '/d: 5.0 GiB and 1000 inodes free, 50 % full' }],
  [
    'a file system without a table of inodes',
    disk({ freeInodes: undefined }),
    { verdict: 'ok', says: /5\.0 GiB free/ },
  ],
  ['a full disk', disk({ fill: { ...fill, freeBytes: 1000 } }), { verdict: 'fail', remedy: /free space/ }],
  ['no inode', disk({ freeInodes: 0 }), { verdict: 'fail', says: /and 0 inodes free/ }],
  ['a read-only disk', disk({ notWritable: 'EROFS' }), { verdict: 'fail', says: /cannot write to \/d \(EROFS\)/ }],
  [
    'a folder above that is not writable',
    disk({ path: '/', notWritable: 'EACCES' }),
    { says: /\/, where \/d is to be made/ },
  ],
  ['a folder that cannot be seen', undefined, { verdict: 'fail', says: /cannot see \/d/ }],
];
for (const [name, facts, expected] of states) {
  t.test(`state: ${name}`, (t) => {
    t.match(judgeStateDisk(facts, '/d'), expected);
    t.end();
  });
}

const at = { imagesHigh: 85, pressure: 90 };
const engines: readonly [name: string, facts: DiskFacts | undefined, verdict: string][] = [
  ['with room', disk(), 'ok'],
  ['that the agent collects images on', disk({ fill: { ...fill, usedPercent: 85 } }), 'warn'],
  ['under pressure', disk({ fill: { ...fill, usedPercent: 90 } }), 'fail'],
  ['on another machine', disk({ path: '/' }), 'warn'],
  ['that cannot be seen', undefined, 'warn'],
];
for (const [name, facts, verdict] of engines) {
  t.test(`engine: a disk ${name}`, (t) => {
    t.match(judgeEngineDisk(facts, '/d', at), { verdict });
    t.end();
  });
}

t.test('the disk of a folder that does not exist yet is that of the one above', async (t) => {
  const dir = temporaryFolder(t);
  const facts = await seeDisk(join(dir, 'a/b'));
  t.match(facts, { path: dir, notWritable: undefined });
  t.ok((facts?.fill.freeBytes ?? 0) > 0);
});
