import t from 'tap';
import { RevocationFeed } from '../../../gateway/auth/revocation-feed.ts';
import { Revocations } from '../../../gateway/auth/revocations.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import type { Question } from '../../../lib/rpc/partition-client.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { until } from '../../support/until.ts';
import { recordingLog, refusal, revocationsOf, type AnswerOf } from '../support.ts';
import { revocationOf } from './support.ts';

const acme = 'acme' as TenantId;

/** One partition, whose owner answers as the test says. */
function feedOf(answer: (after: string | null) => AnswerOf) {
  const asked: (string | null)[] = [];
  const log = recordingLog();
  const revocations = new Revocations();
  const client = {
    partitions: 1,
    partitionFor: () => 0,
    ask: async (_lane: string, question: Question) => {
      const { after } = question as Extract<Question, { type: 'revocation.list' }>;
      asked.push(after);
      return Promise.resolve(answer(after));
    },
  };
  const feed = new RevocationFeed(client, revocations, { clock: systemClock, log });
  t.teardown(() => feed.stop());
  return { feed, asked, log, revocations };
}

t.test('a tenant’s revocations are unknown until its owner has told all pages', async (t) => {
  const { feed, asked, revocations } = feedOf((after) =>
    after === null
      ? revocationsOf([revocationOf({ by: 'jti', value: 'a' })], { more: true, next: '1.1' })
      : revocationsOf([revocationOf({ by: 'jti', value: 'b' })], { whole: false, next: '1.2' }),
  );
  t.equal(feed.knowledgeOf(acme), 'unheard');
  feed.start();
  await until('complete', () => feed.complete());
  t.same(asked, [null, '1.1']);
  t.equal(feed.knowledgeOf(acme), 'known');
  t.equal(revocations.count(), 2);
});

t.test('an owner that is away or answers nonsense leaves them unknown', async (t) => {
  for (const answer of [refusal('unavailable'), { code: 'ok', body: '{}' } as const]) {
    const { feed, asked } = feedOf(() => answer);
    feed.start();
    await until('asked', () => asked.length > 0);
    t.equal(feed.complete(), false);
    t.equal(feed.knowledgeOf(acme), 'unheard');
    feed.stop();
  }
});

t.test('a damaged record concerns its tenant alone', async (t) => {
  const { feed, log } = feedOf(() => revocationsOf([], { unreadable: [acme] }));
  feed.start();
  await until('complete', () => feed.complete());
  t.equal(feed.knowledgeOf(acme), 'damaged');
  t.equal(feed.knowledgeOf('other' as TenantId), 'known');
  t.equal(feed.tenantsRefused(), 1);
  t.match(log.events, [{ event: 'revocations_unreadable', fields: { tenant: acme } }]);
});
