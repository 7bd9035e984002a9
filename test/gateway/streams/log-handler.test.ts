import t from 'tap';
import type { CallOf } from '../../../gateway/call.ts';
import type { RequestHead } from '../../../gateway/http/engine/engine.ts';
import { logHandler, logStreamHandler } from '../../../gateway/streams/log-handler.ts';
import type { NewestLines, LogPosition } from '../../../gateway/streams/logs.ts';
import type { Resumed } from '../../../gateway/streams/sse.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { LogPastPage } from '../../../gateway/streams/log-pages.ts';
import { callOf, exchangeOf, servicesWith } from '../calls.ts';
import { okData, recordingLog, refusal } from '../support.ts';
import { streamsByHand } from './looks.ts';

const id = '018f0000-0000-7000-8000-000000000001' as ContainerId;
const [h1, h2] = ['h1' as HostKey, 'h2' as HostKey];
const line = (seq: number): LogEntry => ({ ts: '2026-01-01T00:00:00.000Z', stream: 'stdout', line: `${seq}`, seq });
const lineAs = (seq: number) => ({ seq, json: JSON.stringify(line(seq)) });
const at = (host: HostKey, next: number): LogPosition => new Map([[host, { next, lastSeq: next }]]);

const noPast = {
  since: undefined as string | undefined,
  until: undefined as string | undefined,
  order: undefined as 'asc' | 'desc' | undefined,
  cursor: undefined as string | undefined,
  contains: undefined as string | undefined,
};

/** A container on `h1` with one line; a test changes what its owner and the stream tell. */
function stage() {
  const told = {
    trace: () => okData({ history: [h1], gone: false }),
    page: (): NewestLines => ({ lines: [lineAs(1)], position: at(h1, 2), more: false, older: undefined }),
    past: (): LogPastPage => ({ entries: [line(2), line(1)], next: undefined }),
    resume: (): Resumed<LogPosition> => ({ position: at(h1, 7) }),
    nowMs: 0,
  };
  const reads: unknown[] = [];
  const read = (what: string) => async (_tenant: string, _id: string, history: readonly HostKey[], from: unknown) => {
    reads.push([what, history.join(), from]);
    return Promise.resolve(told.page());
  };
  const byHand = streamsByHand();
  const log = recordingLog();
  const services = servicesWith(() => told.trace(), {
    clock: { nowMs: () => 0, monotonicMs: () => told.nowMs },
    log,
    logs: {
      newest: read('newest'),
      past: async (_tenant, _id, _history, wish) => (reads.push(['past', wish]), Promise.resolve(told.past())),
      after: read('after'),
      resume: async (_tenant, _id, _history, seq) => (reads.push(['resume', seq]), Promise.resolve(told.resume())),
    },
    streams: byHand.streams,
  });
  const handle = (follow: boolean, head: Partial<RequestHead> = {}, query: Partial<typeof noPast> = {}) => {
    const call: CallOf<'container.logs'> = callOf('container.logs', {
      params: { id },
      query: { ...noPast, ...query, follow, limit: 5 },
      exchange: exchangeOf(head),
    });
    return logHandler(services)(call);
  };
  const stream = (method = 'GET') =>
    logStreamHandler(services)(
      callOf('container.logs.stream', { params: { id }, query: { limit: 5 }, exchange: exchangeOf({ method }) }),
    );
  return { told, reads, handle, stream, log, ...byHand, asked: services.asked };
}

t.test('a list is read now, for HEAD too; without the container nothing is read', async (t) => {
  const { told, reads, handle, followed, log } = stage();
  t.match(await handle(false), { code: 'ok', body: JSON.stringify({ data: [line(1)] }) });
  t.match(await handle(true, { method: 'HEAD' }), { code: 'ok' });
  t.same(reads, [
    ['newest', 'h1', 5],
    ['newest', 'h1', 5],
  ]);
  t.same(followed, []);
  told.page = () => {
    throw new Error('the stream’s server is away');
  };
  t.match(await handle(false), { code: 'unavailable' });
  t.match(log.events, [{ event: 'stream_unreadable' }]);
  told.trace = () => refusal('not_found');
  for (const follow of [false, true]) t.match(await handle(follow), { code: 'not_found' });
  t.equal(reads.length, 3);
});

t.test('a follower gets the newest lines, then those after its position on each host', async (t) => {
  const { told, reads, handle, show, asked } = stage();
  t.equal(await handle(true), 'streamed');
  t.match(await show(), { frames: [{ id: '1', event: 'log', data: JSON.stringify(line(1)) }], ended: false });
  told.trace = () => okData({ history: [h2], gone: false });
  told.page = () => ({ lines: [], position: at(h2, 4), more: true, older: undefined });
  t.match(await show(), { frames: [], more: true, ended: false });
  await show();
  // The position on h1 is kept: the container may return to it.
  t.same(reads, [
    ['newest', 'h1', 5],
    ['after', 'h2', at(h1, 2)],
    ['after', 'h2', new Map([...at(h1, 2), ...at(h2, 4)])],
  ]);
  const question = { type: 'container.trace', tenant: 'acme', id };
  t.match(
    asked,
    ['read', 'watch', 'watch', 'watch'].map((lane) => ({ lane, question })),
  );
});

t.test('`Last-Event-ID` is looked up once; what is none of it is said', async (t) => {
  const { reads, handle, show } = stage();
  await handle(true, { headers: { lastEventId: '12' } });
  await show();
  await show();
  t.same(reads, [
    ['resume', 12],
    ['after', 'h1', at(h1, 7)],
    ['after', 'h1', at(h1, 2)],
  ]);
  for (const lastEventId of ['', 'x', '-1', '1'.repeat(17)]) {
    const other = stage();
    const reset = { reason: 'unknown', oldest: '1' } as const;
    other.told.resume = () => ({ position: new Map(), reset });
    await other.handle(true, { headers: { lastEventId } });
    t.match((await other.show()).frames, [{ event: 'reset', data: JSON.stringify(reset) }, { id: '1' }]);
    t.match(other.reads, [['resume', undefined], ['after']], lastEventId);
    t.notOk(
      (await other.show()).frames.some(({ event }) => event === 'reset'),
      'once',
    );
  }
});

t.test('a stream of its own begins as that of `follow` does', async (t) => {
  const { told, stream, show } = stage();
  t.equal(await stream(), 'streamed');
  t.match(await show(), { frames: [{ id: '1', event: 'log' }] });
  t.match(await stream('HEAD'), { code: 'ok', body: '' });
  told.trace = () => refusal('not_found');
  t.match(await stream(), { code: 'not_found' });
});

t.test('a stream ends when the container is gone, and quiet for as long as an agent drains', async (t) => {
  const { told, handle, show } = stage();
  const quiet: NewestLines = { lines: [], position: new Map(), more: false, older: undefined };
  await handle(true);
  told.nowMs = 10 * limits.logDrainMs;
  told.page = () => quiet;
  t.equal((await show()).ended, false, 'quiet, but not gone');
  told.trace = () => okData({ history: [h1], gone: true });
  told.page = () => ({ ...quiet, lines: [lineAs(2)] });
  t.equal((await show()).ended, false, 'a line has come');
  told.nowMs += limits.logDrainMs;
  told.page = () => ({ ...quiet, more: true });
  t.equal((await show()).ended, false, 'there is more to read');
  told.page = () => quiet;
  told.nowMs--;
  t.equal((await show()).ended, false, 'an agent may still send');
  told.nowMs++;
  t.equal((await show()).ended, true);
});

t.test('a stream ends when the owner has forgotten the container, not while it is away', async (t) => {
  const { told, handle, show } = stage();
  await handle(true);
  told.trace = () => refusal('timeout');
  await t.rejects(show(), { message: 'trace: timeout' });
  told.trace = () => refusal('not_found');
  t.match(await show(), { frames: [], ended: true });
});

t.test('a page of the past, in the order that is asked for', async (t) => {
  const { told, reads, handle, log } = stage();
  const asked = { since: '2026-01-01T00:00:00Z', contains: 'error' };
  t.match(await handle(false, {}, asked), { code: 'ok', body: JSON.stringify({ data: [line(1), line(2)] }) });
  t.match(reads, [['past', { order: 'desc', sinceMs: Date.parse(asked.since), contains: 'error', limit: 5 }]]);
  told.past = () => ({ entries: [line(2)], next: 2 });
  const page = await handle(false, {}, { order: 'desc' });
  const { data, next_cursor: cursor } = JSON.parse(String((page as { body: string }).body)) as {
    data: unknown;
    next_cursor: string;
  };
  t.same(data, [line(2)]);
  await handle(false, {}, { order: 'asc', cursor });
  t.match(reads.at(-1), ['past', { order: 'asc', after: 2 }]);
  const faults = async (query: Partial<typeof noPast>, follow = false) => (await handle(follow, {}, query)) as object;
  t.match(await faults({ cursor: '!' }), { code: 'invalid' });
  t.match(JSON.stringify(await faults({ since: 'now' })), /since.*RFC 3339/);
  t.match(JSON.stringify(await faults({ since: asked.since, until: asked.since })), /must be before `until`/);
  t.match(JSON.stringify(await faults({ order: 'asc' }, true)), /order.*can not be used with `follow`/);
  t.same(log.events, []);
});
