import t from 'tap';
import { hasMoreValues, judgeBody, parseBody } from '../../../gateway/pipeline/check.ts';
import { limits } from '../../../schemas/limits.ts';
import { exchangeOf, headOf } from '../calls.ts';

const json = { contentType: 'application/json' };

t.test('a body is judged by its headers before it comes', (t) => {
  const codeOf = (contentType: string | undefined, body = 'x', patches?: true) =>
    judgeBody(exchangeOf({ headers: contentType === undefined ? {} : { contentType } }, body), {
      bodyBoundBytes: 10,
      ...(patches === undefined ? {} : { patches }),
    })?.code;
  t.equal(codeOf('application/json'), undefined);
  t.equal(codeOf('Application/JSON; charset="utf-8"'), undefined);
  t.equal(codeOf('application/json; charset=latin1'), 'unsupported_media_type');
  t.equal(codeOf('text/plain'), 'unsupported_media_type');
  t.equal(codeOf(undefined), 'unsupported_media_type');
  t.equal(codeOf(undefined, ''), undefined, 'an empty body needs no type');
  t.equal(codeOf('application/json', 'x'.repeat(11)), 'too_large');
  t.equal(codeOf('application/merge-patch+json'), 'unsupported_media_type');
  t.equal(codeOf('application/merge-patch+json', 'x', true), undefined, 'a route of patches takes it');
  t.equal(codeOf('application/json', 'x', true), undefined);
  t.equal(codeOf('application/json-patch+json', 'x', true), 'unsupported_media_type');
  t.end();
});

t.test('JSON in UTF-8 is parsed; anything else is refused with its reason', (t) => {
  const parse = (body: string | Uint8Array, headers = json) => parseBody(headOf({ headers }), Buffer.from(body));
  t.same(parse('{"a":[1]}'), { value: { a: [1] } });
  t.match(parse('{'), { code: 'bad_request', body: /not JSON in UTF-8/ });
  t.match(parse(Uint8Array.of(0x22, 0xff, 0x22)), { code: 'bad_request' });
  t.match(parse(''), { code: 'bad_request' });
  t.match(parse(`[${'1,'.repeat(limits.bodyValues)}1]`), { code: 'too_large', body: /keys and items/ });
  t.match(parseBody(headOf(), Buffer.from('{}')), { code: 'unsupported_media_type' });
  t.end();
});

t.test('keys and items are counted without parsing; those in strings are not', (t) => {
  const rows: [json: string, values: number][] = [
    ['[1,2,3]', 3],
    ['{"a":1,"b":[1,2]}', 4],
    ['["a,b,[{","\\",["]', 2],
    ['          ', 0],
  ];
  for (const [json, values] of rows) {
    const bytes = Buffer.from(json.padEnd(40));
    t.equal(hasMoreValues(bytes, values), false, json);
    if (values > 0) t.equal(hasMoreValues(bytes, values - 1), true, json);
  }
  t.end();
});
