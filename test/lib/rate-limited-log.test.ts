/**
 * Events that others can cause at any rate are logged once in a while, with a count of the rest.
 */
import t from 'tap';
import type { Fields } from '../../lib/log.ts';
import { rateLimitedLog } from '../../lib/rate-limited-log.ts';

t.test('one line of each event in a while, and how many were left out', (t) => {
  const lines: (readonly [string, string, Fields | undefined])[] = [];
  let nowMs = 5;
  const log = rateLimitedLog(
    {
      warn: (event, fields) => lines.push(['warn', event, fields]),
      error: (event, fields) => lines.push(['error', event, fields]),
    },
    1000,
    { monotonicMs: () => nowMs },
  );
  for (let count = 0; count < 50_000; count++) log.warn('refused', { count });
  log.error('other');
  nowMs += 999;
  log.warn('refused', { count: 'late' });
  nowMs += 1;
  log.warn('refused', { count: 'later' });
  log.warn('refused');
  nowMs += 1000;
  log.error('other', { why: 'again' });
  log.warn('refused');
  t.same(lines, [
    ['warn', 'refused', { count: 0 }],
    ['error', 'other', undefined],
    ['warn', 'refused', { count: 'later', left_out: 50_000 }],
    ['error', 'other', { why: 'again' }],
    ['warn', 'refused', { left_out: 1 }],
  ]);
  t.end();
});
