import t from 'tap';
import type { Schemas } from '../../../cli/client/api.ts';
import { versionBefore } from '../../../cli/tenant/versions.ts';

const version = (number: number, outcome: string | null) =>
  ({ version: number, outcome }) as unknown as Schemas['ContainerVersion'];

t.test('the version to return to: the newest earlier one that ran well', (t) => {
  const before = (...all: readonly (readonly [number, string | null])[]) =>
    versionBefore(
      'web',
      all.map((one) => version(...one)),
    );
  t.equal(before([3, 'done'], [2, 'done'], [1, 'done']), 2);
  t.equal(before([3, null], [2, 'superseded'], [1, 'done']), 1);
  t.throws(() => before([1, 'done']), /no earlier version that ran well/);
  t.throws(() => before([2, 'failed'], [1, 'failed']), /no earlier version/);
  t.throws(() => before([2, 'rolled_back'], [1, 'done']), /version 2 was rolled back already/);
  t.end();
});
