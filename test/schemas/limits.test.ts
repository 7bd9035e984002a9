/** The files of schemas/limits/ join into one table without overwriting one another. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { limits } from '../../schemas/limits.ts';

const folder = join(process.cwd(), 'schemas', 'limits');

t.test('each bound is declared once, and each file is part of the table', (t) => {
  const declared = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && file !== 'units.ts')
    .flatMap((file) => {
      const [, table = ''] = readFileSync(join(folder, file), 'utf8').split(/^export const \w+ = \{$/m, 2);
      return [...table.split(/^\}/m, 1)[0]!.matchAll(/^ {2}(\w+):/gm)].map(([, key]) => key);
    });
  t.same([...declared].sort(), Object.keys(limits).sort());
  t.end();
});

t.test('every number of the table is finite and above zero', (t) => {
  for (const [name, value] of Object.entries(limits)) {
    t.ok(typeof value === 'string' || (Number.isFinite(value) && value > 0), name);
  }
  t.end();
});
