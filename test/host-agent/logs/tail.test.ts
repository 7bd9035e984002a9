import t from 'tap';
import { createTail } from '../../../host-agent/logs/tail.ts';
import { limits } from '../../../schemas/limits.ts';
import { base, blocksOf, lineOf, linesOf } from '../support/log-lines.ts';

t.test('the end of a long log stays, with the number of lines missing before it', (t) => {
  const tail = createTail(3 * limits.logBlockBytes);
  const blocks = blocksOf(
    Array.from({ length: 5000 }, (_, index) => lineOf(`line ${index} ${'x'.repeat(40)}`, base + index)),
  );
  for (const block of blocks) tail.push(block);
  const { blocks: kept, lines, dropped } = tail.kept();
  t.equal(lines + dropped, 5000);
  t.ok(kept.reduce((sum, payload) => sum + payload.length, 0) <= 3 * limits.logBlockBytes + 512);
  const entries = kept.flatMap((payload) => linesOf({ payload }));
  t.match(entries[0], { stream: 'stderr', line: new RegExp(`^\\[longshore\\] ${dropped} lines were lost here`) });
  t.match(entries.at(-1)?.line, /^line 4999 /);
  t.ok(entries.every(({ seq }, at) => seq > (entries[at - 1]?.seq ?? 0)));
  t.end();
});
