import t from 'tap';
import { createBodyValidators } from '../../../gateway/validation/bodies.ts';
import { routes } from '../../../schemas/routes.ts';

t.test('every validator belongs to a route with a body, and refuses what is no object', (t) => {
  const validators = createBodyValidators({ nowMs: () => 0, monotonicMs: () => 0 });
  const withBody = new Set<string>(routes.filter((route) => 'body' in route).map(({ name }) => name));
  for (const [name, validate] of Object.entries(validators)) {
    t.ok(withBody.has(name), name);
    for (const body of [null, [], 'x', 7])
      t.same(validate(body), { ok: false, faults: { _: ['must be an object'] } }, name);
  }
  t.end();
});
