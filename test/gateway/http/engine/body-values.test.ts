import t from 'tap';
import { hasMoreValues } from '../../../../gateway/http/engine/body-values.ts';

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
