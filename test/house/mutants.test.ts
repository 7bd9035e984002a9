/** Every mutant applies to the sources, and docs/faults.md lists them all. */
import t from 'tap';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../dev/paths.ts';
import { mutated } from '../mutants/kill.ts';
import { mutants, mutantTable } from '../mutants/mutants.ts';
import { changed, compiled, DoesNotApply, type Change } from '../mutants/syntax.ts';

t.test('docs/faults.md has the table of mutants', (t) => {
  const text = readFileSync(join(repositoryRoot, 'docs/faults.md'), 'utf8');
  const [, shown] = /<!-- mutants -->([^]*?)<!-- \/mutants -->/.exec(text) ?? [];
  t.equal(shown?.trim(), mutantTable(), 'node dist/test/mutants/docs.js writes it');
  t.end();
});

t.test('every mutant applies', (t) => {
  for (const mutant of mutants) {
    const where = `${mutant.name} (test/mutants/guards, ${mutant.file})`;
    try {
      mutated(mutant);
    } catch (error) {
      t.fail(`${where}: ${(error as Error).message}`);
    }
  }
  t.end();
});

t.test('each invariant has mutants, with a name and an existing killer each', (t) => {
  t.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length, 'no name stands twice');
  const invariants = readFileSync(join(repositoryRoot, 'ARCHITECTURE.md'), 'utf8').match(/^- \*\*A\d+(?=\*\*)/gm) ?? [];
  t.same(
    [...new Set(mutants.map(({ breaks }) => breaks))],
    [...invariants.map((text) => text.replaceAll(/[^A\d]/g, '')), 'security'],
  );
  for (const { name, killedBy } of mutants) {
    if (killedBy !== 'simulation') t.ok(existsSync(join(repositoryRoot, killedBy)), name);
  }
  t.end();
});

const source = `
export function decide(ask: Ask, { max = 1 }: Limits): Reply {
  const isFull = (count: number): boolean => count >= max || ask.held;
  if (
    ask.size > 3 &&  // why
    isFull(2)
  ) return 'full';
  notify(ask, [one, two]);
  return { kind: 'done', ...ask };
}
class Log {
  #size = 1;
  write(line: string): void {
    if (line === '') return;
    this.#size += line.length as number;
  }
}
class Other {
  write(): void {}
}
`;

/** The changed line, without its types. */
function lineOf(change: Change): string {
  const before = compiled('x.ts', source).split('\n');
  const after = compiled('x.ts', changed('x.ts', source, [change])).split('\n');
  return after.find((line, index) => line !== before[index])?.trim() ?? 'the same';
}

t.test('a change is found by symbol and syntax, in any layout', (t) => {
  const rows: [Change, string][] = [
    [{ in: 'decide', never: 'ask.size > 3 && isFull(2)' }, 'if (false)'],
    [{ in: 'decide', omit: 'ask.size > 3' }, 'if (isFull(2))'],
    [{ in: 'decide', omit: 'isFull(2)' }, 'if (ask.size > 3)'],
    [{ in: 'decide.isFull', always: 'count >= max' }, 'const isFull = (count) => true || ask.held;'],
    [{ in: 'decide', omit: 'notify(ask, [one, two,])' }, ';'],
    [{ in: 'decide', omit: 'one' }, 'notify(ask, [two]);'],
    [{ in: 'decide', omit: '[one, two]' }, 'notify(ask);'],
    [{ in: 'decide', omit: '...ask' }, "return { kind: 'done' };"],
    [{ in: 'decide', replace: 'max = 1', by: 'max = 2' }, 'export function decide(ask, { max = 2 }) {'],
    [{ in: 'decide', replace: "return 'full'", by: 'return 0' }, 'return 0;'],
    [{ in: 'Log.write', never: "line === ''" }, 'if (false)'],
    [{ in: 'Log.#size', replace: '1', by: '2' }, '#size = 2;'],
  ];
  for (const [change, line] of rows) t.equal(lineOf(change), line, JSON.stringify(change));
  t.end();
});

t.test('a change that does not fit its source names what is missing', (t) => {
  const rows: [Change, RegExp][] = [
    [{ in: 'decideAll', never: 'ask' }, /no symbol decideAll/],
    [{ in: 'Log.read', never: 'line' }, /no symbol Log\.read/],
    [{ in: 'write', never: "line === ''" }, /more than one symbol write/],
    [{ in: 'decide', never: 'ask.size > 4' }, /no `ask\.size > 4` in decide/],
    [{ in: 'decide', never: 'ask' }, /more than one `ask` in decide/],
    [{ in: 'decide', omit: 'ask.size' }, /`ask\.size` can not be left out/],
    [{ in: 'decide', replace: 'ask.size', by: '(' }, /not TypeScript/],
  ];
  for (const [change, message] of rows) {
    t.throws(() => lineOf(change), { constructor: DoesNotApply, message }, JSON.stringify(change));
  }
  t.end();
});
