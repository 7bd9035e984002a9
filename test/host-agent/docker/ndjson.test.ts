import fc from 'fast-check';
import t from 'tap';
import { lines as ndjson } from '../../../host-agent/docker/ndjson.ts';
import { cut, fractions, seed } from '../support/log-lines.ts';

t.test('lines of JSON survive any cut of their bytes', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.json(), { maxLength: 10 }), fractions, async (values, at) => {
      const bytes = Buffer.from(values.map((value) => `${value}\n`).join(''));
      const out: string[] = [];
      async function* chunks() {
        for (const chunk of cut(bytes, at)) yield await Promise.resolve(chunk);
      }
      for await (const line of ndjson(chunks(), 100_000)) out.push(line.toString());
      t.same(out, values);
    }),
    { numRuns: 100, seed },
  );
});
