import t from 'tap';
import Type, { type TSchema } from 'typebox';
import { DecodeError, decoder } from '../../../lib/decode.ts';

const open = Type.Object({ type: Type.Literal('open'), port: Type.Integer({ minimum: 1 }) });
const close = Type.Object(
  { type: Type.Literal('close'), why: Type.Union([Type.Literal('done'), Type.Object({ code: Type.Integer() })]) },
  { additionalProperties: false },
);
const tagged = Type.Union([open, close]);
const textOrList = Type.Union([Type.String({ maxLength: 3 }), Type.Array(Type.Integer())]);
const orNull = Type.Object({ a: Type.Union([Type.Object({ b: Type.Integer() }), Type.Null()]) });
const untagged = Type.Union([
  Type.Object({ a: Type.Integer(), b: Type.Integer(), c: Type.Integer() }),
  Type.Object({ a: Type.Integer(), d: Type.Integer() }),
]);

const rows: [TSchema, unknown, string][] = [
  [tagged, { type: 'close', why: 'done', x: 1 }, '/x is not known'],
  [tagged, { type: 'close' }, "/why can't be blank"],
  [tagged, { type: 'close', why: 'left' }, '/why must be one of done'],
  [tagged, { type: 'close', why: { code: 'x' } }, '/why/code must be an integer'],
  [tagged, { type: 'open', port: 0 }, '/port must be at least 1'],
  [tagged, { type: 'shut' }, '/type must be one of open, close'],
  [tagged, 7, 'must be an object'],
  [Type.Array(tagged), [{ type: 'open', port: 1 }, { type: 'shut' }], '/1/type must be one of open, close'],
  [Type.Array(tagged), [{ type: 'shut' }, { type: 'open', port: 0 }], '/0/type must be one of open, close'],
  [textOrList, 'long', 'must be at most 3 characters'],
  [textOrList, ['x'], '/0 must be an integer'],
  [textOrList, true, 'must be a string or must be a list'],
  [orNull, { a: { b: 'x' } }, '/a/b must be an integer'],
  [orNull, { a: 7 }, '/a must be an object'],
  [untagged, { a: 1 }, "/d can't be blank"],
  [Type.Object({ a: Type.Integer(), b: Type.Integer() }), {}, "/a, /b can't be blank"],
  [Type.Integer(), 'x', 'must be an integer'],
];

t.test('a fault is one of the branch that was meant, in words of our own', (t) => {
  for (const [schema, value, fault] of rows)
    t.throws(() => decoder(schema)(Buffer.from(JSON.stringify(value))), new DecodeError(fault), JSON.stringify(value));
  t.end();
});
