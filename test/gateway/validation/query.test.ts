import t from 'tap';
import Type from 'typebox';
import { queryReader } from '../../../gateway/validation/query.ts';

const described = (schema: Type.TSchema, fallback?: number | boolean) => ({
  schema,
  description: '',
  ...(fallback === undefined ? {} : { fallback }),
});
const query = {
  limit: described(Type.Integer({ minimum: 1, maximum: 100 }), 20),
  follow: described(Type.Boolean(), false),
  status: described(Type.Enum(['running', 'stopped'])),
  cursor: described(Type.String()),
};
const read = queryReader({ query });
const absent = { limit: 20, follow: false, status: undefined, cursor: undefined };

t.test('a parameter that is absent has its fallback', (t) => {
  t.same(read(''), { ok: true, value: absent });
  t.end();
});

t.test('parameters that are unknown, or come twice', (t) => {
  const faults = {
    unknown: ['is no parameter of this route'],
    statsu: ['is no parameter of this route: did you mean "status"?'],
    limit: ['must be given only once'],
  };
  const text = 'unknown=1&limit=7&statsu=x&limit=8';
  t.same(read(text), { ok: false, faults });
  t.same(queryReader({})('limit=x'), { ok: false, faults: { limit: ['is no parameter of this route'] } });
  const value = { ...absent, limit: 7 };
  const warning = Object.entries(faults).map(([name, [fault]]) => `"${name}" ${fault}`);
  t.match(queryReader({ query, ignores: 'named' })(text), { ok: true, value, warning: /^"unknown" is no/ });
  for (const words of warning) t.match(queryReader({ query, ignores: 'named' })(text), { warning: words });
  t.same(queryReader({ query, ignores: 'all' })(text), { ok: true, value });
  t.same(queryReader({ query, ignores: 'named' })('a%0d%0a=1&%E2%82%AC=1'), { ok: true, value: absent }, 'no header');
  t.match(read('__proto__=1&constructor=1'), { ok: false, faults: { constructor: [/is no parameter/] } });
  const many = read(Array.from({ length: 200 }, (_, at) => `p${at}=1`).join('&'));
  t.equal(many.ok ? 0 : Object.keys(many.faults).length, 64, 'a bounded number is named');
  t.end();
});

t.test('values have the type of their schema', (t) => {
  const value = { limit: 7, follow: true, status: 'stopped', cursor: 'a b' };
  t.same(read('limit=7&follow=true&status=stopped&cursor=a%20b'), { ok: true, value });
  t.end();
});

t.test('a list of words of an enumeration', (t) => {
  const words = Type.Array(Type.Enum(['running', 'stopped']), { maxItems: 2 });
  const readWords = queryReader({ query: { status: described(words) } });
  t.same(readWords('status=stopped&status=running'), { ok: true, value: { status: ['stopped', 'running'] } });
  const status = ['must be one of running, stopped'];
  t.same(readWords('status=stopped&status=gone'), { ok: false, faults: { status } });
  t.end();
});

t.test('all faults are reported at once, each under its parameter', (t) => {
  const limit = ['must be an integer from 1 to 100'];
  for (const text of ['0', '101', '1.5', '1e1', '', ' 1', '0x1', '9'.repeat(16)]) {
    t.same(read(`limit=${text}`), { ok: false, faults: { limit } }, `limit=${text}`);
  }
  const faults = { limit, follow: ['must be true or false'], status: ['must be one of running, stopped'] };
  t.same(read('limit=x&follow=1&status=gone'), { ok: false, faults });
  t.end();
});

t.test('lists, texts of a form, and what is required', (t) => {
  const list = {
    schema: Type.Array(Type.String({ maxLength: 5 }), { minItems: 1, maxItems: 2 }),
    description: '',
    required: true,
  } as const;
  const path = { schema: Type.String({ maxLength: 8, pattern: '^/' }), description: '', form: 'a path' } as const;
  const of = queryReader({ query: { list, path } });
  const rows: [string, object][] = [
    ['list=a&list=b&path=/x', { ok: true, value: { list: ['a', 'b'], path: '/x' } }],
    ['list=', { ok: true, value: { list: [''] } }],
    ['', { ok: false, faults: { list: ['is required'] } }],
    ['path=/x', { ok: false, faults: { list: ['is required'] } }],
    ['list=a&list=b&list=c', { ok: false, faults: { list: ['must come at most 2 times'] } }],
    ['list=a&list=123456', { ok: false, faults: { list: ['must have at most 5 characters'] } }],
    ['list=a%00', { ok: false, faults: { list: ['must not have a NUL'] } }],
    ['path=x', { ok: false, faults: { list: ['is required'], path: ['must be a path'] } }],
    ['list=a&path=/23456789', { ok: false, faults: { path: ['must have at most 8 characters'] } }],
  ];
  for (const [query, result] of rows) t.match(of(query), result, query);
  t.end();
});
