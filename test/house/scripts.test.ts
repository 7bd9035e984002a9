/** Every script of package.json is a command that the bootstrap knows. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
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
