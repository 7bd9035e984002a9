import t from 'tap';
import { createVpnActors } from '../../../gateway/vpn/service/actors.ts';
import { createForageMeters } from '../../../gateway/vpn/metrics.ts';
import type { Outcome, Question } from '../../../lib/rpc/partition-client.ts';
import type { OperationId } from '../../../schemas/ids.ts';

/** Two partitions, whose owners answer when they are let. */
function cluster() {
  const waiting: (() => void)[] = [];
  let answers = (question: Question): Outcome => ({
    code: 'ok',
    body: JSON.stringify(
      question.type === 'peer.count'
        ? { data: { active: 2, disabled: 1, expired: 0, earliest: 5_000 } }
        : { data: [], more: false },
    ),
  });
  const actors = createVpnActors({
    ask: (_kind, question) => new Promise((resolve) => waiting.push(() => resolve(answers(question)))),
    partitions: () => 2,
    newOperationId: () => 'operation-00000000' as OperationId,
  });
  return {
    actors,
    asked: () => waiting.length,
    answer: (count = Infinity) => {
      for (const release of waiting.splice(0, count)) release();
    },
    fail: () => {
      answers = () => ({ code: 'unavailable', body: '' });
    },
  };
}

const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };
const told = /^forage_peers\{state="active"\} 4$/m;

t.test('scrapes that come together ask once, and each has the whole', async (t) => {
  let seconds = 0;
  const meters = createForageMeters('1', () => seconds);
  const { actors, asked, answer } = cluster();
  const first = meters.scrape(asker, actors);
  const second = meters.scrape(asker, actors);
  t.equal(asked(), 4, 'a count and a list of each partition');
  answer();
  for (const text of await Promise.all([first, second])) t.match(text, told);
  seconds = 0.5;
  t.match(await meters.scrape(asker, actors), told, 'what was told a moment ago is told again');
  t.equal(asked(), 0);
  seconds = 2;
  const later = meters.scrape(asker, actors);
  t.equal(asked(), 4);
  answer();
  t.match(await later, told);
});

t.test('a scrape does not take away what another has begun to tell', async (t) => {
  let seconds = 0;
  const meters = createForageMeters('1', () => seconds);
  const { actors, answer } = cluster();
  const first = meters.scrape(asker, actors);
  answer(3);
  await new Promise(setImmediate);
  seconds = 2;
  const second = meters.scrape(asker, actors);
  answer(1);
  t.match(await first, told);
  answer();
  t.match(await second, told);
});

t.test('a value that can not be fetched is absent, not stale', async (t) => {
  let seconds = 0;
  const meters = createForageMeters('1', () => seconds);
  const { actors, answer, fail } = cluster();
  const before = meters.scrape(asker, actors);
  answer();
  t.match(await before, told);
  fail();
  seconds = 2;
  const after = meters.scrape(asker, actors);
  answer();
  t.notMatch(await after, /^forage_peers\{/m);
  t.match(await after, /^forage_build_info\{version="1"\} 1$/m);
});
