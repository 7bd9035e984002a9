/** Containers that are followed: all, and then each that changes. */
import t from 'tap';
import { watchHandler } from '../../../gateway/streams/watch.ts';
import type { FollowOptions } from '../../../gateway/streams/host.ts';
import type { Question } from '../../../lib/rpc/partition-client.ts';
import { encodeCursor } from '../../../schemas/api/cursor.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { callOf, exchangeOf } from '../calls.ts';
import { refusal, type AnswerOf } from '../support.ts';
import { streamsByHand } from './looks.ts';

const id = '018f0000-0000-7000-8000-000000000001' as ContainerId;
const cursor = encodeCursor({ insertedAtMs: 5, id });
const item = (name: string) => ({ container: { name } });
const page = (data: readonly object[], revision: number, more: object = {}): AnswerOf => ({
  code: 'ok',
  body: JSON.stringify({ data, position: { epoch: 3, revision }, more: false, ...more }),
});

const noFilter = {
  status: undefined,
  name: undefined as string[] | undefined,
  project: undefined,
  host_key: undefined,
  label: undefined as string[] | undefined,
};

/** An owner that gives one answer after another; the last one stays. */
function stage(...answers: AnswerOf[]) {
  const asked: Question[] = [];
  const bells = new Map<string, () => void>();
  const byHand = streamsByHand();
  let nowMs = 0;
  const handler = watchHandler({
    ask: (_lane, question) => {
      asked.push(question);
      return Promise.resolve((answers.length > 1 ? answers.shift() : answers[0]) ?? refusal('unavailable'));
    },
    streams: {
      ...byHand.streams,
      listen: (subject, ring) => {
        bells.set(subject, ring);
        return () => bells.delete(subject);
      },
    },
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
  });
  const follow = async (lastEventId?: string, filters: Partial<typeof noFilter> = {}): Promise<FollowOptions> => {
    const headers = lastEventId === undefined ? {} : { lastEventId };
    const query = { ...noFilter, ...filters };
    await handler(callOf('container.watch', { query, exchange: exchangeOf({ headers }) }));
    const options = byHand.followed.at(-1);
    if (options === undefined) throw new Error('nothing is followed');
    return options;
  };
  const textsOf = async (options: FollowOptions): Promise<string[]> => {
    // An answer comes in a later tick than its ask.
    await new Promise((resolve) => setImmediate(resolve));
    const { frames, more } = await options.show();
    const texts = frames.map(({ event, data, id }) => `${event} ${data}${id === undefined ? '' : ` @${id}`}`);
    return more ? [...texts, '…'] : texts;
  };
  const from = () => asked.map((question) => ('from' in question ? question.from : undefined));
  return { asked, bells, follow, textsOf, from, answers, pass: (ms: number) => (nowMs += ms) };
}

t.test('all, page by page, then what changed since the first page, then what changes', async (t) => {
  const { follow, textsOf, from } = stage(
    page([item('b')], 10, { next_cursor: cursor }),
    page([item('a')], 12),
    page([item('b'), { removed: id }], 12),
    page([], 12),
    page([item('c')], 13),
  );
  const options = await follow();
  t.same(await textsOf(options), ['item {"container":{"name":"b"}}', '…']);
  t.same(await textsOf(options), ['item {"container":{"name":"a"}}', '…']);
  t.same(await textsOf(options), [
    'item {"container":{"name":"b"}}',
    `removed {"id":"${id}"} @3.12`,
    'synced {"position":"3.12"} @3.12',
  ]);
  t.same(await textsOf(options), []);
  t.same(await textsOf(options), ['item {"container":{"name":"c"}} @3.13']);
  t.same(from(), [
    { before: null },
    { before: { insertedAtMs: 5, id } },
    { after: { epoch: 3, revision: 10 } },
    { after: { epoch: 3, revision: 12 } },
    { after: { epoch: 3, revision: 12 } },
  ]);
});

t.test('a client resumes after the last frame, and begins again where that is not known', async (t) => {
  const resumed = stage(page([item('a')], 12));
  t.same(await resumed.textsOf(await resumed.follow('3.11')), [
    'item {"container":{"name":"a"}} @3.12',
    'synced {"position":"3.12"} @3.12',
  ]);
  t.same(resumed.from(), [{ after: { epoch: 3, revision: 11 } }]);
  const late = stage(page([], 90_000, { reset: 'expired' }), page([item('a')], 90_000));
  const options = await late.follow('3.11');
  t.same(await late.textsOf(options), ['reset {"reason":"expired","oldest":null}', '…']);
  t.same(await late.textsOf(options), ['item {"container":{"name":"a"}}', '…']);
  const foreign = stage(page([item('a')], 1));
  t.same(await foreign.textsOf(await foreign.follow('garbage')), [
    'reset {"reason":"unknown","oldest":null}',
    'item {"container":{"name":"a"}}',
    '…',
  ]);
});

t.test('another owner in the middle of all pages', async (t) => {
  const { follow, textsOf } = stage(
    page([item('b')], 10, { next_cursor: cursor }),
    page([item('a')], 2, { position: { epoch: 4, revision: 2 } }),
    page([item('a')], 2, { position: { epoch: 4, revision: 2 } }),
  );
  const options = await follow();
  await options.show();
  t.same(await textsOf(options), ['reset {"reason":"unknown","oldest":null}', '…']);
  t.same(await textsOf(options), ['item {"container":{"name":"a"}}', '…']);
});

t.test('a client that waits gets the position now and then', async (t) => {
  const { follow, textsOf, pass } = stage(page([], 12));
  const options = await follow('3.12');
  t.same(await textsOf(options), ['synced {"position":"3.12"} @3.12']);
  t.same(await textsOf(options), []);
  pass(limits.streamHeartbeatMs);
  t.same(await textsOf(options), ['heartbeat {"position":"3.12"} @3.12']);
  t.same(await textsOf(options), []);
});

t.test('however many follow, there is one subscription and one look', async (t) => {
  const { follow, bells, asked } = stage(page([], 12));
  const all = await Promise.all(Array.from({ length: 20 }, () => follow('3.12')));
  const rung: number[] = [];
  const silence = all.map(({ doorbell }, at) =>
    typeof doorbell === 'string' ? () => {} : doorbell(() => rung.push(at)),
  );
  t.equal(bells.size, 1);
  bells.get('changed.acme.*')?.();
  t.equal(rung.length, 20);
  await Promise.all(all.map(({ show }) => show()));
  t.equal(asked.length, 1);
  silence.slice(1).forEach((leave) => leave());
  t.equal(bells.size, 1);
  silence[0]?.();
  t.equal(bells.size, 0, 'nobody follows any more');
});

t.test('filters are asked of the owner, and share no look with others', async (t) => {
  const { follow, asked } = stage(page([], 12));
  const some = await follow('3.12', { name: ['web'], label: ['team=a'] });
  const all = await follow('3.12');
  await Promise.all([some.show(), all.show()]);
  t.match(asked, [{ only: { name: ['web'] }, labels: ['team=a'] }, { only: {} }]);
  t.equal(asked.length, 2);
});

t.test('an owner that is away is asked again later', async (t) => {
  const { follow, answers, textsOf } = stage(refusal('unavailable'));
  const options = await follow();
  await t.rejects(options.show(), { name: 'AskError' });
  answers.splice(0, 1, page([item('a')], 1));
  t.same(await textsOf(options), ['item {"container":{"name":"a"}}', '…']);
});
