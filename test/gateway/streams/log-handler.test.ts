import t from 'tap';
import type { CallOf } from '../../../gateway/call.ts';
import type { RequestHead } from '../../../gateway/http/engine/engine.ts';
import { logHandler } from '../../../gateway/streams/log-handler.ts';
import type { LogPage, LogPosition } from '../../../gateway/streams/logs.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { callOf, exchangeOf, servicesWith } from '../calls.ts';
import { okData, recordingLog, refusal } from '../support.ts';
import { streamsByHand } from './looks.ts';

const id = '018f0000-0000-7000-8000-000000000001' as ContainerId;
const [h1, h2] = ['h1' as HostKey, 'h2' as HostKey];
const line = (seq: number): LogEntry => ({ ts: '2026-01-01T00:00:00.000Z', stream: 'stdout', line: `${seq}`, seq });
const lineAs = (seq: number) => ({ seq, json: JSON.stringify(line(seq)) });
const at = (host: HostKey, next: number): LogPosition => new Map([[host, { next, lastSeq: next }]]);

/** A container on `h1` with one line; a test changes what its owner and the stream tell. */
function stage() {
  const told = {
    trace: () => okData({ history: [h1], gone: false }),
    page: (): LogPage => ({ lines: [lineAs(1)], position: at(h1, 2), more: false }),
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
      after: read('after'),
      positionAfter: async (_tenant, _id, _history, seq) => (reads.push(['position', seq]), Promise.resolve(at(h1, 7))),
    },
    streams: byHand.streams,
  });
  const handle = (follow: boolean, head: Partial<RequestHead> = {}) => {
    const call: CallOf<'container.logs'> = callOf('container.logs', {
      params: { id },
      query: { follow, limit: 5 },
      exchange: exchangeOf(head),
    });
    return logHandler(services)(call);
  };
  return { told, reads, handle, log, ...byHand, asked: services.asked };
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
  told.page = () => ({ lines: [], position: at(h2, 4), more: true });
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

t.test('`Last-Event-ID` is looked up once; a text of another form is as none', async (t) => {
  const { reads, handle, show } = stage();
  await handle(true, { headers: { lastEventId: '12' } });
  await show();
  await show();
  t.same(reads, [
    ['position', 12],
    ['after', 'h1', at(h1, 7)],
    ['after', 'h1', at(h1, 2)],
  ]);
  for (const lastEventId of ['', 'x', '-1', '1'.repeat(17)]) {
    const other = stage();
    await other.handle(true, { headers: { lastEventId } });
    await other.show();
    t.match(other.reads, [['newest']], lastEventId);
  }
});

t.test('a stream ends when the container is gone, and quiet for as long as an agent drains', async (t) => {
  const { told, handle, show } = stage();
  const quiet: LogPage = { lines: [], position: new Map(), more: false };
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
