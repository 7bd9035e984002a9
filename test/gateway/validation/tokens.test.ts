import t from 'tap';
import { linkClockAheadMs, validatePeerLink, validatePeerToken } from '../../../gateway/validation/tokens.ts';
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

t.test('a link lasts seven days at most', (t) => {
  const endOf = (body: object) => validatePeerLink(body, nowMs);
  const lasting = (expiresAtMs: number | null) => ({ ok: true, value: { expiresAtMs } });
  t.same(endOf({}), lasting(null));
  t.same(endOf({ expires_at: null }), lasting(null));
  t.same(endOf({ expires_at: after(1) }), lasting(nowMs + 1));
  const { linkTtlMaxMs } = limits;
  const ahead = endOf({ expires_at: after(linkTtlMaxMs + linkClockAheadMs) });
  t.same(ahead, lasting(nowMs + linkTtlMaxMs), 'of a client whose clock is ahead');
  const rows: readonly (readonly [body: object, faults: Record<string, readonly string[]>])[] = [
    [{ expires_at: after(0) }, { expires_at: ['must be in the future'] }],
    [{ expires_at: after(linkTtlMaxMs + linkClockAheadMs + 1) }, { expires_at: ['must be within seven days'] }],
    [{ expires_at: 'soon' }, { expires_at: ['must be an RFC 3339 time, like 2026-01-31T12:00:00Z'] }],
    [{ scope: 'download' }, { scope: ['is not known'] }],
  ];
  for (const [body, faults] of rows) t.same(endOf(body), { ok: false, faults });
  t.end();
});
