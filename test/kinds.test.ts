import t from 'tap';
import { journeys, kindOf, kindTable, nameOf } from './kinds.ts';
import { testFiles } from './support/runner/tap-stream.ts';

t.test('the longest start of a path that fits names its kind', (t) => {
  t.equal(kindOf('dist/test/lib/time/slices.test.js'), 'fast');
  t.equal(kindOf('test/integration/cli/interrupt.test.ts'), 'server');
  t.equal(kindOf('test/integration/cli/package.test.ts'), 'nightly');
  t.equal(kindOf('test/house/imports.test.ts'), 'house');
  t.end();
});

t.test('each row of the table is about a test file that exists, and has an effect', (t) => {
  const names = testFiles().map(nameOf);
  for (const [start, kind] of kindTable) {
    const own = names.filter((name) => name.startsWith(start));
    t.ok(
      own.some((name) => kindOf(`test/${name}`) === kind),
      `${start}: ${kind}`,
    );
  }
  t.equal(new Set(kindTable.map(([start]) => start)).size, kindTable.length, 'each start once');
  t.end();
});

t.test('journeys exist, and are not run by their kind already', (t) => {
  const names = testFiles().map(nameOf);
  for (const journey of journeys) {
    t.ok(names.includes(journey), journey);
    t.ok(['server', 'destructive'].includes(kindOf(`test/${journey}`)), journey);
  }
  t.end();
});
