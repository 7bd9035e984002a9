/**
 * `npm run docs`: writes the tables of docs/, the dashboards of deploy/ and the types of the client
 * from the code. Tests of test/house fail if one of them is outdated.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientTypes, clientTypesPath } from './client-types.ts';
import { fillTables } from './markdown.ts';
import { boardFiles } from '../dashboards/boards.ts';
import { pages, tables } from './pages.ts';
import { repositoryRoot } from '../paths.ts';
import { say } from '../steps.ts';

function write(name: string, textOf: (before: string) => string): void {
  const path = join(repositoryRoot, name);
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const after = textOf(before);
  if (after !== before) writeFileSync(path, after);
  say(`${after === before ? '·' : '✓'} ${name}${after === before ? ' is up to date' : ' written'}`);
}

for (const [name, textOf] of boardFiles) write(name, textOf);
for (const page of pages) write(page, (before) => fillTables(before, tables));
const types = await clientTypes();
write(clientTypesPath, () => types);
