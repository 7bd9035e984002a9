import t from 'tap';
import { emptyBag, judgeFraming, safeHeaderValue, takeHeader } from '../../../../gateway/http/engine/guard.ts';

function bagOf(headers: readonly (readonly [name: string, value: string])[]) {
  const bag = emptyBag();
  for (const [name, value] of headers) takeHeader(bag, name, value);
  return bag;
}

t.test('the framing of a body, and refusals because two parsers could differ', (t) => {
  const length = (value: string) => ['content-length', value] as const;
  const coding = (value: string) => ['transfer-encoding', value] as const;
  const rows: [string, (readonly [string, string])[], string][] = [
    ['GET', [], 'empty'],
    ['GET', [['host', 'a.b_c-d:80']], 'empty'],
    ['GET', [['host', '[::1]:80']], 'empty'],
    ['GET', [['host', '']], 'empty'],
    ['GET', [['host', 'a b']], 'refused'],
    ['GET', [['host', 'a/b']], 'refused'],
    ['GET', [['host', 'u@a']], 'refused'],
    ['GET', [['host', 'a:b']], 'refused'],
    ['GET', [['host', '::1']], 'refused'],
    ['POST', [], 'unframed'],
    ['PUT', [], 'unframed'],
    ['PATCH', [], 'unframed'],
    ['DELETE', [], 'empty'],
    ['POST', [length('0')], 'empty'],
    ['POST', [length('12')], 'length'],
    ['POST', [length('+1')], 'refused'],
    ['POST', [length('1, 1')], 'refused'],
    ['POST', [length('9'.repeat(16))], 'refused'],
    ['POST', [length('1'), length('1')], 'refused'],
    ['POST', [coding('chunked')], 'chunked'],
    ['POST', [coding(' Chunked ')], 'chunked'],
    ['POST', [coding('gzip, chunked')], 'refused'],
    ['POST', [coding('chunked'), length('1')], 'refused'],
    ['POST', [coding('chunked'), coding('chunked')], 'refused'],
    [
      'GET',
      [
        ['host', 'a'],
        ['host', 'a'],
      ],
      'refused',
    ],
    [
      'GET',
      [
        ['authorization', 'a'],
        ['authorization', 'b'],
      ],
      'refused',
    ],
  ];
  for (const [method, headers, kind] of rows) {
    t.equal(judgeFraming(method, bagOf(headers)).kind, kind, `${method} ${JSON.stringify(headers)}`);
  }
  t.end();
});

t.test('lists are joined; of other headers the first counts', (t) => {
  const bag = bagOf([
    ['cookie', 'a=1'],
    ['cookie', 'b=2'],
    ['x-forwarded-for', '192.0.2.1'],
    ['x-forwarded-for', '192.0.2.2'],
    ['content-type', 'application/json'],
    ['content-type', 'text/plain'],
    ['x-unknown', 'x'],
  ]);
  t.same(bag, {
    ambiguous: false,
    cookie: 'a=1; b=2',
    forwardedFor: '192.0.2.1, 192.0.2.2',
    contentType: 'application/json',
  });
  t.equal(safeHeaderValue('a\r\nx-evil: 1\0'), 'ax-evil: 1');
  t.end();
});
