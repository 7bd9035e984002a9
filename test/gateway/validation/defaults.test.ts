import t from 'tap';
import Type from 'typebox';
import { defaultOf } from '../../../gateway/validation/defaults.ts';

t.test('a default is read from its schema', (t) => {
  t.equal(defaultOf(Type.String({ default: 'latest' })), 'latest');
  t.same(defaultOf(Type.Array(Type.String(), { default: [] })), []);
  t.end();
});

t.test('a schema without a default, or with one that it refuses itself, is a bug', (t) => {
  t.throws(() => defaultOf(Type.String()), /a default is missing or wrong/);
  t.throws(() => defaultOf(Type.Integer({ minimum: 1, default: 0 })), /a default is missing or wrong/);
  t.end();
});
