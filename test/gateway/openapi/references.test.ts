import t from 'tap';
import Type from 'typebox';
import { referencesTo } from '../../../gateway/openapi/references.ts';

const Leaf = Type.Object({ at: Type.String() });
const Tree = Type.Object({ leaf: Leaf, spare: Type.Optional(Leaf), leaves: Type.Array(Leaf) });
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const leaf = { $ref: '#/components/schemas/Leaf' };

t.test('a named schema is referred to wherever it is, a copy of it too', (t) => {
  const { refer, schemas } = referencesTo({ Leaf, Tree });
  t.same(plain(refer({ schema: Tree })), { schema: { $ref: '#/components/schemas/Tree' } });
  t.same(plain(schemas), {
    Leaf: plain(Leaf),
    Tree: {
      type: 'object',
      required: ['leaf', 'leaves'],
      properties: { leaf, spare: leaf, leaves: { type: 'array', items: leaf } },
    },
  });
  t.end();
});

t.test('a description of its place stands beside the reference', (t) => {
  const { refer } = referencesTo({ Leaf });
  t.same(refer({ ...(plain(Leaf) as object), description: 'The first.' }), { ...leaf, description: 'The first.' });
  t.end();
});

t.test('schemas that only their descriptions tell apart have two names, and nothing else is either', (t) => {
  const { refer } = referencesTo({ Leaf, Twig: Type.Object({ at: Type.String() }, { description: 'Twig.' }) });
  t.same(refer({ ...(plain(Leaf) as object), description: 'Twig.' }), { $ref: '#/components/schemas/Twig' });
  t.match(refer({ ...(plain(Leaf) as object), description: 'Other.' }), { type: 'object', description: 'Other.' });
  t.throws(() => referencesTo({ Leaf, Blade: Type.Object({ at: Type.String() }) }), /Leaf and Blade/);
  t.end();
});

t.test('values of an enumeration have their type', (t) => {
  const { refer } = referencesTo({});
  t.same(plain(refer(Type.Enum(['a', 'b']))), { type: 'string', enum: ['a', 'b'] });
  t.end();
});
