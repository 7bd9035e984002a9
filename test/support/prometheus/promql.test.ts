import t from 'tap';
import { namesIn } from './promql.ts';

t.test('metrics and labels are told from functions, texts and numbers', (t) => {
  for (const [query, metrics, labels] of [
    ['up', ['up'], []],
    ['sum by (le, route) (rate(a_b_bucket{x=~"c{d}|by (e)", y!="f"}[5m]))', ['a_b_bucket'], ['le', 'route', 'x', 'y']],
    ['(sum(a) or vector(0)) / on (x) group_left b > 1e3', ['a', 'b'], ['x']],
    ['topk(16, max without (z) (a{})) offset 5m', ['a'], ['z']],
  ] as const) {
    const names = namesIn(query);
    t.same([...names.metrics].sort(), metrics, query);
    t.same([...names.labels].sort(), labels, query);
  }
  t.end();
});
