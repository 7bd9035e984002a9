/** The checker finds nothing wrong with histories that are right by construction. */
import t from 'tap';
import { createRandom } from '../../actors/support/random.ts';
import { check, explain } from './check.ts';
import { generate, type Shape } from './generate.ts';
import { decodeHistory, encodeHistory } from './history.ts';

const small: Shape = { tenants: 2, clients: 4, operations: 400, unknownOneIn: 20, capContainers: 6, names: 8 };

t.test('a history that happened in some order passes', (t) => {
  for (let seed = 1; seed <= 100; seed++) {
    const findings = check(generate(createRandom(seed), small));
    if (findings.length > 0) t.fail(`seed ${seed}\n${findings.map(explain).join('\n')}`);
  }
  t.end();
});

t.test('ten thousand operations are judged in seconds', (t) => {
  const shape: Shape = { tenants: 5, clients: 6, operations: 10_000, unknownOneIn: 100, capContainers: 20, names: 30 };
  const history = generate(createRandom(1), shape);
  const startMs = performance.now();
  t.same(check(history).map(explain), []);
  const ms = performance.now() - startMs;
  t.comment(`${history.operations.length} operations in ${ms.toFixed(0)} ms`);
  t.ok(ms < 60_000);
  t.end();
});

t.test('a history survives its file format', (t) => {
  const history = generate(createRandom(3), small);
  t.same(decodeHistory(encodeHistory(history)), history);
  t.end();
});
