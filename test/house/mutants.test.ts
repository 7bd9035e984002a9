/** The list of mutants is what docs/faults.md shows, and each takes out what is there. */
import t from 'tap';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { mutants, mutantTable } from '../mutants/mutants.ts';

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');

t.test('docs/faults.md has the table of mutants', (t) => {
  const [, shown] = /<!-- mutants -->([^]*?)<!-- \/mutants -->/.exec(read('docs/faults.md')) ?? [];
  t.equal(shown?.trim(), mutantTable(), 'node dist/test/mutants/docs.js writes it');
  t.end();
});

t.test('what a mutant takes out stands in the compiled code exactly once', (t) => {
  for (const { name, file, edits } of mutants) {
    const text = read(join('dist', file));
    for (const { find } of edits) t.equal(text.split(find).length, 2, name);
  }
  t.end();
});

t.test('a mutant has a name of its own, and a killer that is there', (t) => {
  t.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length);
  for (const { name, killedBy } of mutants) {
    if (killedBy.by === 'test') t.ok(existsSync(join(repositoryRoot, killedBy.file)), name);
  }
  t.end();
});
