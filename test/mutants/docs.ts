/** `node dist/test/mutants/docs.js`: writes the table of mutants into docs/faults.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { mutantTable } from './mutants.ts';

const path = join(repositoryRoot, 'docs/faults.md');
const text = readFileSync(path, 'utf8');
writeFileSync(
  path,
  text.replace(
    /<!-- mutants -->[^]*?<!-- \/mutants -->/,
    () => `<!-- mutants -->\n${mutantTable()}\n<!-- /mutants -->`,
  ),
);
