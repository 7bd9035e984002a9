/**
 * `npm run docs`: writes the tables of docs/ from the code. test/house/docs.test.ts fails if a
 * table is outdated.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fillTables } from './markdown.ts';
import { pages, tables } from './pages.ts';
import { repositoryRoot } from '../paths.ts';
import { say } from '../steps.ts';

for (const page of pages) {
  const path = join(repositoryRoot, page);
  const before = readFileSync(path, 'utf8');
  const after = fillTables(before, tables);
  if (after !== before) writeFileSync(path, after);
  say(`${after === before ? '·' : '✓'} ${page}${after === before ? ' is up to date' : ' written'}`);
}
