import { execFileSync } from 'node:child_process';
import t from 'tap';
import { repositoryRoot } from '../../dev/paths.ts';

const program = `
import { lstat, open } from 'node:fs/promises';
const firsts = new Set();
for (let round = 0; round < 100; round++) {
  const ended = [];
  await Promise.all(['a', 'b'].map((name) => lstat('.').then(() => ended.push(name))));
  firsts.add(ended[0]);
}
const file = await open('package.json');
const { name } = JSON.parse(await file.readFile('utf8'));
await file.close();
const missing = await lstat('/nowhere').catch(({ code }) => code);
console.log(JSON.stringify([[...firsts].sort(), name, missing]));
`;

t.test('files are read in any order, and what is read is what there is', (t) => {
  const args = ['--import', './dist/test/support/jitter.js', '--input-type=module', '--eval', program];
  const output = execFileSync(process.execPath, args, { cwd: repositoryRoot, encoding: 'utf8', timeout: 60_000 });
  t.equal(output.trim(), JSON.stringify([['a', 'b'], 'longshore', 'ENOENT']));
  t.end();
});
