import t from 'tap';
import { validatePeerToken } from '../../../gateway/validation/tokens.ts';
import { limits } from '../../../schemas/limits.ts';

const nowMs = Date.UTC(2026, 0, 1);
const after = (ms: number): string => new Date(nowMs + ms).toISOString();

t.test('a token lasts as long as is asked, up to a bound', (t) => {
  t.same(validatePeerToken({ scope: 'pac' }, nowMs), { ok: true, value: { scope: 'pac', expiresAtMs: null } });
  const longest = validatePeerToken({ scope: 'download', expires_at: after(limits.tokenTtlMaxMs) }, nowMs);
  t.same(longest, { ok: true, value: { scope: 'download', expiresAtMs: nowMs + limits.tokenTtlMaxMs } });
  const rows: readonly (readonly [body: Record<string, unknown>, faults: Record<string, readonly string[]>])[] = [
    [{}, { scope: ["can't be blank"] }],
    [{ scope: 'all' }, { scope: ['must be one of download, pac'] }],
    [{ scope: 'pac', expires_at: after(0) }, { expires_at: ['must be in the future'] }],
    [{ scope: 'pac', expires_at: after(limits.tokenTtlMaxMs + 1) }, { expires_at: ['must be within three years'] }],
    [{ scope: 'pac', name: 'a' }, { name: ['is not known'] }],
  ];
  for (const [body, faults] of rows) t.same(validatePeerToken(body, nowMs), { ok: false, faults });
  t.end();
});
