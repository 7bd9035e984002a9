import Type from 'typebox';
import t from 'tap';
import { bodyValidator } from '../../../gateway/validation/schema.ts';
import { limits } from '../../../schemas/limits.ts';

const Body = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 3 }),
    count: Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: 9 }), Type.Null()])),
    kind: Type.Optional(Type.Enum(['a', 'b'])),
    list: Type.Optional(Type.Array(Type.String(), { maxItems: 2, uniqueItems: true })),
    inner: Type.Optional(Type.Object({ at: Type.Boolean() }, { additionalProperties: false })),
  },
  { additionalProperties: false },
);
const validate = bodyValidator(Body);

t.test('every fault has the path of its field and words of our own', (t) => {
  const rows: [unknown, Record<string, string[]>][] = [
    [{}, { name: ["can't be blank"] }],
    [{ name: '' }, { name: ["can't be blank"] }],
    [{ name: 'abcd' }, { name: ['must be at most 3 characters'] }],
    [{ name: 7 }, { name: ['must be a string'] }],
    [{ name: 'a', count: 0 }, { count: ['must be at least 1'] }],
    [{ name: 'a', count: 10 }, { count: ['must be at most 9'] }],
    [{ name: 'a', count: 'x' }, { count: ['must be an integer'] }],
    [{ name: 'a', kind: 'c' }, { kind: ['must be one of a, b'] }],
    [{ name: 'a', list: ['x', 'x'] }, { list: ['must be distinct'] }],
    [{ name: 'a', list: ['x', 'y', 'z'] }, { list: ['must be at most 2 items'] }],
    [
      { name: 'a', inner: { at: 1, more: 1 } },
      { 'inner.at': ['must be true or false'], 'inner.more': ['is not known'] },
    ],
    [{ name: 'a', 'x/y~z': 1 }, { 'x/y~z': ['is not known'] }],
    [[], { _: ['must be an object'] }],
  ];
  for (const [body, faults] of rows) t.same(validate(body), { ok: false, faults }, JSON.stringify(body));
  t.same(validate({ name: 'a', count: null }), { ok: true, value: { name: 'a', count: null } });
  t.end();
});

t.test('the number of faulty fields and the length of their names are bounded', (t) => {
  const many = Object.fromEntries(Array.from({ length: 2 * limits.bodyFaults }, (_, n) => [`x${n}`, 1]));
  const answer = validate({ name: 'a', ...many, ['y'.repeat(1000)]: 1 });
  t.ok(!answer.ok && Object.keys(answer.faults).length === limits.bodyFaults);
  const long = validate({ name: 'a', ['y'.repeat(1000)]: 1 });
  t.same(Object.keys(long.ok ? {} : long.faults), [`${'y'.repeat(limits.faultFieldChars)}…`]);
  t.end();
});
