import t from 'tap';
import { conditional } from '../../../gateway/http/conditional.ts';
import { callOf, exchangeOf } from '../calls.ts';

const file = (ifNoneMatch?: string, content = 'text') =>
  conditional(
    callOf('network.ca', { exchange: exchangeOf({ headers: ifNoneMatch === undefined ? {} : { ifNoneMatch } }) }),
    content,
    { whole: ['content-type', 'text/plain'], always: ['cache-control', 'private'] },
  );

t.test('a client that has the content gets 304 without it', (t) => {
  const first = file();
  const [, , , etag = ''] = first.headers ?? [];
  t.match(first, { code: 'ok', body: 'text', headers: ['content-type', 'text/plain', 'etag', /^"[\w-]{27}"$/] });
  for (const known of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    t.same(file(known), { code: 'not_modified', body: '', headers: ['etag', etag, 'cache-control', 'private'] }, known);
  }
  t.equal(file('"x"').code, 'ok');
  t.equal(file(etag, 'changed').code, 'ok');
  t.end();
});
