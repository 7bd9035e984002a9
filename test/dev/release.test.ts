import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { packPrograms, unpackPrograms } from '../../dev/release/programs.ts';
import { temporaryFolder } from '../support/folder.ts';

t.test('packing a commit twice gives the same archive, and its programs run', async (t) => {
  const folder = temporaryFolder(t);
  const repository = join(folder, 'repository');
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.net', '-C', repository, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  for (const room of ['schemas', 'lib', 'gateway', 'actors', 'host-agent', 'test'])
    mkdirSync(join(repository, room), { recursive: true });
  const write = (path: string, text: string): void => writeFileSync(join(repository, path), text);
  write('package.json', '{"name":"programs","version":"7.0.0","type":"module"}\n');
  write('lib/word.ts', 'export type Word = string;\nexport const word: Word = "said";\n');
  write(
    'gateway/main.ts',
    '// Why.\nimport { word, type Word } from "../lib/word.ts";\nexport const text: Word = word;\n',
  );
  for (const room of ['schemas', 'actors', 'host-agent', 'test']) write(`${room}/x.ts`, 'export {};\n');
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'one');
  const commit = git('rev-parse', 'HEAD').trim();

  const archive = await packPrograms(repository, commit);
  git('commit', '-q', '--allow-empty', '-m', 'two');
  write('lib/word.ts', 'export const word = "changed since";\n');
  t.ok(archive.equals(await packPrograms(repository, commit)), 'both archives have the same bytes');

  const file = join(folder, '7.0.0.tar.gz');
  writeFileSync(file, archive);
  const release = join(folder, 'releases', '7.0.0');
  await unpackPrograms(file, release);
  await unpackPrograms(file, release);
  const main = join(release, 'dist/gateway/main.js');
  t.notMatch(readFileSync(main, 'utf8'), /Why|Word/, 'comments and types are stripped');
  t.match(await import(pathToFileURL(main).href), { text: 'said' });
  t.throws(() => readFileSync(join(release, 'dist/test/x.js')), { code: 'ENOENT' }, 'the archive holds no tests');
});
