import t from 'tap';
import type { FailureKind, Gate } from '../../../gateway/auth/gate.ts';
import { UrlTokens } from '../../../gateway/auth/url-tokens.ts';
import { hashOfToken, newToken } from '../../../gateway/auth/random-tokens.ts';
import type { Outcome } from '../../../lib/rpc/partition-client.ts';
import type { TokenScope } from '../../../schemas/api/peer.ts';
import { peerId } from '../vpn/support.ts';
import { headOf } from '../calls.ts';

function urlTokensOf(answer: Outcome, partitions: number | 'unknown' = 4) {
  const failures: FailureKind[] = [];
  const budgets: FailureKind[] = [];
  const counted: string[] = [];
  const asked: unknown[] = [];
  const gate: Pick<Gate, 'admit' | 'countFailure' | 'limitedByFailures' | 'limitedByTenant'> = {
    admit: () => ({ kind: 'refused', result: { code: 'rate_limited', body: '' } }),
    countFailure: (_head, kind) => void failures.push(kind),
    limitedByFailures: (_head, kind) => {
      budgets.push(kind);
      return undefined;
    },
    limitedByTenant: () => undefined,
  };
  const tokens = new UrlTokens({
    gate,
    ask: (question) => {
      asked.push(question);
      return Promise.resolve(answer);
    },
    partitions: () => (partitions === 'unknown' ? undefined : partitions),
    counted: (_route, reason) => void counted.push(reason),
  });
  const admit = async (token: string, access: TokenScope = 'download') => {
    const head = headOf({ query: `token=${token}` });
    const admission = await tokens.admit(head, access, { route: 'artifact.qr', origin: { rid: 'r' }, deadlineMs: 1 });
    return admission.kind === 'refused' ? admission.result.code : admission.kind;
  };
  return { admit, failures, budgets, counted, asked };
}

const grant = (scope: TokenScope): Outcome => ({
  code: 'ok',
  body: JSON.stringify({ data: { tenant: 'acme', peer: peerId, scope } }),
});

t.test('a token that its owner knows is granted, and counts against itself afterwards', async (t) => {
  const { admit, budgets, asked } = urlTokensOf(grant('download'));
  const { text } = newToken('download', 3);
  t.equal(await admit(text), 'granted');
  t.match(asked, [{ type: 'token.resolve', partition: 3, hash: hashOfToken(text) }]);
  t.equal(await admit(text), 'granted');
  t.same(budgets, ['url token', `url token ${hashOfToken(text)}`]);
});

t.test('a text that cannot be a token of this use costs no ask and no budget', async (t) => {
  const { admit, failures, asked, counted } = urlTokensOf(grant('download'));
  for (const text of ['x', newToken('pac', 1).text, newToken('download', 4).text]) {
    t.equal(await admit(text), 'unauthenticated', text.slice(0, 5));
  }
  t.equal(await admit('', 'pac'), 'unauthenticated');
  t.same([failures, asked], [[], []]);
  t.same(counted, ['token', 'token', 'token', 'none']);
});

t.test('a token that its owner refuses counts as a failure; an owner that is away does not', async (t) => {
  const { text } = newToken('download', 1);
  const wrong = urlTokensOf({ code: 'unauthenticated', body: '' });
  t.equal(await wrong.admit(text), 'unauthenticated');
  t.same(wrong.failures, ['url token']);
  const other = urlTokensOf(grant('pac'));
  t.equal(await other.admit(text), 'unauthenticated', 'a token of another use');
  const away = urlTokensOf({ code: 'unavailable', body: '' });
  t.equal(await away.admit(text), 'unavailable');
  t.same(away.failures, []);
});

t.test('until the cluster is known, tokens in URLs are 503', async (t) => {
  const { admit } = urlTokensOf(grant('download'), 'unknown');
  t.equal(await admit(newToken('download', 0).text), 'unavailable');
});
