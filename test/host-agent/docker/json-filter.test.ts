/** The filter keeps only the members that the agent reads, while an answer arrives. */
import t from 'tap';
import fc from 'fast-check';
import { JsonFilter, Some, type Shape } from '../../../host-agent/docker/json-filter.ts';

function sieved(
  shape: Shape,
  text: string,
  sizes: readonly number[] = [],
  maxBytes = 1_000_000,
  isList = false,
): unknown[] {
  const filter = new JsonFilter(shape, maxBytes, isList);
  const bytes = Buffer.from(text);
  const documents: Buffer[] = [];
  let from = 0;
  for (const size of [...sizes, bytes.length]) {
    documents.push(...filter.push(bytes.subarray(from, from + size)));
    from += size;
  }
  documents.push(...filter.end());
  return documents.map((document) => JSON.parse(document.toString()) as unknown);
}

/** The expected result, from the whole value. */
function kept(shape: Shape | undefined, value: unknown): unknown {
  if (shape === undefined || shape === true || value === null || typeof value !== 'object') return value;
  if (Array.isArray(value)) {
    const [each] = Array.isArray(shape) ? (shape as readonly [Shape | Some]) : [];
    if (!(each instanceof Some)) return each === undefined ? [] : value.map((element) => kept(each, element));
    return value.filter((element) => typeof element === 'string' && each.wants(element)).slice(0, each.max);
  }
  if (Array.isArray(shape) || typeof shape === 'number') return {};
  const members = Object.entries(value).filter(([name]) => Object.hasOwn(shape, name));
  const shapes = shape as Readonly<Record<string, Shape>>;
  return Object.fromEntries(members.map(([name, each]) => [name, kept(shapes[name], each)]));
}

const isWanted = (text: string): boolean => text.startsWith('b');

for (const [name, shape, text, expected] of [
  ['members that the shape names', { a: true }, '{"b":[1,{"a":2}],"a":{"x":[1]},"c":"}"}', [{ a: { x: [1] } }]],
  ['a shape for each element', [{ a: true }], '[{"a":1,"b":2},{"b":3},{"a":null}]', [[{ a: 1 }, {}, { a: null }]]],
  ['a shape inside a shape', { a: { b: true } }, '{"a":{"c":1,"b":"\\u0041"},"b":2}', [{ a: { b: 'A' } }]],
  ['a document a line', { a: true }, '{"a":1}\n{"b":1}\r\n{"a":[]}\n', [{ a: 1 }, {}, { a: [] }]],
  ['quotes and backslashes', { a: true }, '{"x\\"a":1,"y":"\\\\","a":"\\\\\\"","z":"\\\\\\\\"}', [{ a: '\\"' }]],
  ['a name with escapes', { a: true }, '{"\\u0061":1}', [{ a: 1 }]],
  ['a null where an object may be', { a: { b: true } }, '{"a":null}', [{ a: null }]],
  ['null', [true], 'null', [null]],
  ['a prefix of a string', { a: 4, b: 4 }, '{"a":"abcdef","b":"ab"}', [{ a: 'abcd', b: 'ab' }]],
  ['a prefix up to an escape', { a: 9, b: true }, '{"a":"ab\\"cd","b":1}', [{ a: 'ab', b: 1 }]],
  ['a prefix up to what is not ASCII', { a: 9 }, '{"a":"abücd"}', [{ a: 'ab' }]],
  [
    'a prefix of what is no string',
    { a: 4, b: 4, c: 4 },
    '{"a":{"x":1},"b":[1],"c":12345}',
    [{ a: {}, b: [], c: 12345 }],
  ],
  [
    'the first wanted strings',
    { a: [new Some(2, isWanted)] },
    '{"a":["x","b1","b2","b3"],"c":1}',
    [{ a: ['b1', 'b2'] }],
  ],
  [
    'and nothing else',
    [new Some(9, isWanted)],
    '[1,"b\\u0031",{"a":["b"]},null,["b"],"\\"b","b\\\\"]',
    [['b1', 'b\\']],
  ],
  ['no string beyond any name', [new Some(9)], `["${'x'.repeat(513)}","${'y'.repeat(512)}"]`, [['y'.repeat(512)]]],
  ['nothing', [true], '', []],
] as const) {
  t.test(name, (t) => {
    t.same(sieved(shape, text), expected);
    t.end();
  });
}

t.test('the result equals parsing all and dropping the rest, for any cut of the text', (t) => {
  const name = fc.constantFrom('a', 'b', 'c', '"', '\\', 'ü', '');
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom<unknown>(null, true, 0, -1.5e3),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\\', '\\\\', '"\\', '{}[],:"'),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(name, tie('value'), { maxKeys: 4 }),
    ),
  }));
  const { shape } = fc.letrec<{ shape: Shape }>((tie) => ({
    shape: fc.oneof(
      { maxDepth: 4 },
      fc.constant<Shape>(true),
      tie('shape').map((each): Shape => [each]),
      fc.nat({ max: 3 }).map((max): Shape => [new Some(max, (text) => !text.includes('{'))]),
      fc.dictionary(name, tie('shape'), { maxKeys: 4 }),
    ),
  }));
  const document = fc.oneof(fc.array(value, { maxLength: 4 }), fc.dictionary(name, value, { maxKeys: 5 }));
  const spaced = fc.constantFrom(undefined, 1);
  const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 60 });
  fc.assert(
    fc.property(document, shape, spaced, sizes, (all, keep, space, cuts) => {
      const [first, ...more] = sieved(keep, JSON.stringify(all, null, space), cuts);
      // Compared as JSON: the filter keeps the text of numbers, and repeated names.
      t.same(first, JSON.parse(JSON.stringify(kept(keep, all))));
      t.equal(more.length, 0);
      if (Array.isArray(all) && Array.isArray(keep) && !(keep[0] instanceof Some)) {
        const elements = all.filter((each) => typeof each === 'object' && each !== null);
        const listed = sieved(keep, JSON.stringify(elements, null, space), cuts, undefined, true);
        t.same(listed, JSON.parse(JSON.stringify(kept(keep, elements))), 'the elements of a list, one after another');
      }
    }),
    { numRuns: 500 },
  );
  t.end();
});

t.test('kept members are bounded, skipped ones use no memory', (t) => {
  const text = JSON.stringify([{ big: 'x'.repeat(100_000), a: 'y'.repeat(100) }]);
  t.same(sieved([{ a: true }], text, [], 200), [[{ a: 'y'.repeat(100) }]]);
  t.throws(() => sieved([{ a: true }], text, [], 100), { message: /more than 100 bytes/ });
  t.throws(() => sieved([{ big: true }], text, [], 200), { message: /more than 200 bytes/ });
  t.same(sieved({ a: true }, `{"${'n'.repeat(100_000)}":1,"a":2}`, [], 200), [{ a: 2 }]);
  const named = `{"a":{"${'n'.repeat(300)}":1},"b":2}`;
  t.same(sieved({ a: true }, named, [150], 400), [{ a: { ['n'.repeat(300)]: 1 } }], 'a name counts up to the bound');
  t.throws(() => sieved({ a: true }, named, [150], 250), { message: /more than 250 bytes/ });
  t.end();
});

t.test('a prefix is the same for any cut, and bounds what is kept', (t) => {
  const text = JSON.stringify({ b: 1, a: `exec_create: ${'x"\\ü'.repeat(1000)}`, c: 2 });
  for (const size of [1, 2, 3, 17, 18, 19, 400]) {
    const cuts = Array.from({ length: Math.ceil(text.length / size) }, () => size);
    t.same(sieved({ a: 64, c: true }, text, cuts, 100), [{ a: 'exec_create: x', c: 2 }], String(size));
  }
  t.same(sieved({ a: 4 }, JSON.stringify({ a: 'x'.repeat(100_000) }), [50_000], 100), [{ a: 'xxxx' }]);
  t.end();
});

t.test('of a list, each element is bounded, and their number is not', (t) => {
  const list = JSON.stringify(Array.from({ length: 100 }, (_, a) => ({ a, b: 'x'.repeat(100) })));
  t.equal(sieved([{ a: true, b: true }], list, [], 200, true).length, 100);
  t.throws(() => sieved([{ a: true, b: true }], list, [], 100, true), { message: /more than 100 bytes/ });
  t.same(sieved([{ a: true }], '[]', [], 100, true), []);
  t.throws(() => sieved([{ a: true }], '[{"a":1}', [], 100, true), { message: /cut off/ });
  t.end();
});

t.test('a text that is cut off or is not JSON is an error', (t) => {
  for (const text of ['[{"a":1}', '{"a":"', '{"x":[', ']', '{"a":1}}']) t.throws(() => sieved({ a: true }, text), text);
  t.end();
});
