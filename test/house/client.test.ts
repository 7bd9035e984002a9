/** The types of the client are those of the document that this gateway serves. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { clientTypes, clientTypesPath } from '../../dev/docs/client-types.ts';
import { repositoryRoot } from '../../dev/paths.ts';

t.test('the types of the client are as `npm run docs` writes them', async (t) => {
  const written = readFileSync(join(repositoryRoot, clientTypesPath), 'utf8');
  t.ok(written === (await clientTypes()), 'run `npm run docs`');
  t.match(written, /container_create: \{/);
});
