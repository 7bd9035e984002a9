/** The bootstrap knows each script of package.json, and needs nothing installed. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../dev/paths.ts';

const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const bootstrap = 'dev/bootstrap.mjs';

t.test('package.json has a script for each command', (t) => {
  const { stdout, stderr } = spawnSync(process.execPath, [join(repositoryRoot, bootstrap), 'nothing'], {
    encoding: 'utf8',
  });
  const [, known = ''] = /bootstrap\.mjs (\S+) \[arguments\]/.exec(stdout + stderr) ?? [];
  const called = Object.values(scripts).flatMap((script) => /^node dev\/bootstrap\.mjs (\w+)$/.exec(script)?.[1] ?? []);
  t.same(known.split('|').sort(), called.sort());
  t.end();
});

t.test('the bootstrap imports no package at its start', (t) => {
  const files = [bootstrap, ...readdirSync(join(repositoryRoot, 'dev/build')).map((name) => `dev/build/${name}`)];
  for (const file of files) {
    const text = readFileSync(join(repositoryRoot, file), 'utf8');
    const packages = [...text.matchAll(/^import [^;]*?from '([^']+)';|^import '([^']+)';/gm)]
      .map(([, from = '', alone = '']) => from || alone)
      .filter((name) => !name.startsWith('node:') && !name.startsWith('.'));
    t.same(packages, [], file);
  }
  t.end();
});
