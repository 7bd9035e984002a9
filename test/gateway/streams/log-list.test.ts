/** Lists of log lines: the containers of a list, the order of the lines, and refusals. */
import t from 'tap';
import type { CallOf } from '../../../gateway/call.ts';
import { logListHandler } from '../../../gateway/streams/log-list.ts';
import type { LogWish } from '../../../gateway/streams/log-pages.ts';
import type { Outcome, Question } from '../../../lib/rpc/partition-client.ts';
import { encodeCursor, encodeLogPlace } from '../../../schemas/api/cursor.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { callOf, servicesWith } from '../calls.ts';
import { okData, recordingLog, refusal } from '../support.ts';

const idAt = (at: number): ContainerId => `018f0000-0000-7000-8000-${String(at).padStart(12, '0')}` as ContainerId;
const line = (seq: number): LogEntry => ({ ts: '2026-01-01T00:00:00.000Z', stream: 'stdout', line: `${seq}`, seq });

const none: CallOf<'log.list'>['query'] = {
  ...{ status: undefined, name: undefined, project: undefined, host_key: undefined, label: undefined },
  ...{ since: undefined, until: undefined, order: undefined, cursor: undefined, contains: undefined, limit: 3 },
};

/** So many containers, whose owner lists ten in a page; each has a line. */
function stage(count: number, answer?: (question: Question) => Outcome | undefined) {
  const read: { readonly id: ContainerId; readonly history: readonly HostKey[]; readonly wish: LogWish }[] = [];
  const log = recordingLog();
  let nowMs = 0;
  const services = servicesWith(
    (question) => {
      const told = answer?.(question);
      if (told !== undefined) return told;
      if (question.type === 'container.trace') return okData({ history: ['h1'], gone: false });
      if (question.type !== 'container.overview') throw new Error(question.type);
      const from = question.before?.insertedAtMs ?? 0;
      const to = Math.min(from + Math.min(question.limit, 10), count);
      const data = Array.from({ length: to - from }, (_, at) => ({
        container: { id: idAt(from + at), name: `c${from + at}`, status: 'running' },
        labels: {},
      }));
      const next = to < count ? { next_cursor: encodeCursor({ insertedAtMs: to, id: idAt(to) }) } : {};
      return { code: 'ok', body: JSON.stringify({ data, ...next }) };
    },
    {
      clock: { nowMs: () => 0, monotonicMs: () => nowMs },
      log,
      logs: {
        ...servicesWith().logs,
        past: (_tenant, id, history, wish) => {
          read.push({ id, history, wish });
          const seq = Number(id.slice(-4)) + 1;
          return Promise.resolve({ entries: history.length === 0 ? [] : [line(seq)], next: undefined });
        },
      },
    },
  );
  const list = async (query: Partial<typeof none> = {}) => {
    const result = await logListHandler(services)(callOf('log.list', { query: { ...none, ...query } }));
    if (result === 'streamed') throw new Error('a list is no stream');
    const { data, ...rest } = JSON.parse(String(result.body) || '{}') as {
      data?: { seq: number; name: string; container_id: string }[];
    };
    return { ...result, seqs: data?.map(({ seq }) => seq), data, rest };
  };
  return { list, read, log, asked: services.asked, atMs: (ms: number) => (nowMs = ms) };
}

t.test('the newest lines of all that match, the oldest first; then a page goes on', async (t) => {
  const { list, asked, read } = stage(12);
  const first = await list({ label: ['a=b'], host_key: ['h1'], name: ['c1'] });
  t.same(first.seqs, [10, 11, 12]);
  t.match(first.data?.[0], { container_id: idAt(9), name: 'c9', line: '10' });
  const filters = { only: { name: ['c1'], host: ['h1'] }, labels: ['a=b'] };
  t.match(
    asked.filter(({ question }) => question.type === 'container.overview').map(({ question }) => question),
    [filters, filters],
    'every page of the overview, by the same filters',
  );
  t.equal(read.length, 12);
  t.match(read[0], { history: ['h1'], wish: { order: 'desc', limit: 3, after: undefined } });
  const { next_cursor: cursor } = first.rest as { next_cursor: string };
  t.equal(cursor, encodeLogPlace({ seq: 10, id: idAt(9) }));
  read.length = 0;
  await list({ cursor, order: 'desc' });
  t.same([read[8]?.wish.after, read[9]?.wish.after], [11, 10], 'a line of that number of another one is to come');
  t.same((await list({ order: 'asc' })).seqs, [1, 2, 3]);
});

t.test('too many containers are refused, however many pages they are', async (t) => {
  const { list, read } = stage(limits.logsContainers + 1);
  const refused = await list();
  t.match(refused, { code: 'conflict', rest: { reason: 'too_many', detail: { max: limits.logsContainers } } });
  t.same(read, [], 'and nothing is read');
  t.equal((await stage(limits.logsContainers).list()).code, 'ok');
  t.same((await stage(0).list()).seqs, []);
});

t.test('faults of the query, and failures of the owner', async (t) => {
  const { list, asked, log } = stage(1);
  t.match(await list({ since: 'monday' }), { code: 'invalid', rest: { details: { since: [] } } });
  t.match(await list({ cursor: 'x' }), { code: 'invalid', rest: { details: { cursor: [] } } });
  t.same(asked, []);
  const gone = stage(2, ({ type, ...rest }) =>
    type === 'container.trace' && 'id' in rest && rest.id === idAt(0) ? refusal('not_found') : undefined,
  );
  t.same((await gone.list()).seqs, [2], 'one that is forgotten meanwhile has no lines');
  for (const away of ['container.overview', 'container.trace']) {
    const failing = stage(1, ({ type }) => (type === away ? refusal('unavailable') : undefined));
    t.equal((await failing.list()).code, 'unavailable');
  }
  const late = stage(9);
  late.atMs(1000);
  t.equal((await late.list()).code, 'timeout');
  t.same(late.read, [], 'nothing is read for an answer that comes too late');
  t.same(log.events, []);
});
