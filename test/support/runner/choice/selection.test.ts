import t from 'tap';
import type { Graph } from './graph.ts';
import { longestFirst, select, whoseTurnItIs, type Wish } from './selection.ts';

const [slices, http, owner, images] = [
  'dist/test/lib/time/slices.test.js',
  'dist/test/integration/gateway/http.test.js',
  'dist/test/integration/actors/owner.test.js',
  'dist/test/e2e/deploy/images.test.js',
];
const journey = 'dist/test/e2e/start/start.test.js';
const all = [slices, http, owner, images, journey];

/** `owner` and `images` import actors/owner.ts. */
const graph: Graph = {
  importsOf: (path) => new Set([path, ...([owner, images].includes(path) ? ['dist/actors/owner.js'] : [])]),
  toolsOf: () => new Set(),
};
const none: Wish = { kinds: undefined, names: [], changed: [] };

t.test('the files that run', (t) => {
  const rows: [string, Partial<Wish>, string[]][] = [
    ['nothing said: fast, contract and journeys', {}, [slices, http, journey]],
    ['kinds', { kinds: ['destructive', 'nightly'] }, [owner, images]],
    ['a part of a path, of any kind', { names: ['actors/'] }, [owner]],
    ['a part of a path, of a kind', { names: ['integration'], kinds: ['contract'] }, [http]],
    [
      'what imports a changed file is added, but not by night',
      { changed: ['dist/actors/owner.js'] },
      [slices, http, owner, journey],
    ],
    ['a changed test itself', { changed: [owner] }, [slices, http, owner, journey]],
    ['nothing fits', { names: ['no such file'] }, []],
  ];
  for (const [name, wish, expected] of rows) t.same(select(all, { ...none, ...wish }, graph), expected, name);
  t.end();
});

t.test('the longest files come first; one that nobody has timed comes last', (t) => {
  const durations = new Map([
    ['integration/actors/owner', 20],
    ['integration/gateway/http', 90],
  ]);
  t.same(longestFirst([slices, owner, http], durations), [http, owner, slices]);
  t.end();
});

t.test('files that take turns: each has one, and turns are equally long; others always run', (t) => {
  const turns = 6;
  const count = 2 * turns;
  const secondsOf = (index: number): number => 10 * (count - index);
  const names = Array.from(
    { length: count },
    (_, index) => `integration/actors/long-${String(index).padStart(2, '0')}`,
  );
  const durations = new Map(names.map((name, index) => [name, secondsOf(index)]));
  const long = names.map((name) => `dist/test/${name}.test.js`);
  const always = [slices, http, images, journey, 'dist/test/sim/simulation.test.js'];
  const seen = Array.from({ length: turns }, (_, turn) => {
    const files = whoseTurnItIs([...long, ...always], turns, turn, durations);
    t.same(
      always.filter((path) => files.includes(path)),
      always,
    );
    const own = long.filter((path) => files.includes(path));
    t.equal(
      own.map((path) => secondsOf(long.indexOf(path))).reduce((sum, seconds) => sum + seconds),
      10 * (count + 1),
    );
    return own;
  });
  t.same(seen.flat().sort(), long);
  t.end();
});
