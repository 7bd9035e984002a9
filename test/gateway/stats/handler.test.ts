/** `GET /:id/stats`, with the host's end of the session in the test. */
import t from 'tap';
import type { CallOf } from '../../../gateway/call.ts';
import type { RequestHead } from '../../../gateway/http/engine/engine.ts';
import { statsHandler, statsLookMs, statsSwapMs } from '../../../gateway/stats/handler.ts';
import { StatsWatches, statsFreshMs } from '../../../gateway/stats/watches.ts';
import type { Showing } from '../../../gateway/streams/host.ts';
import type { ContainerStats } from '../../../schemas/api/usage/stats.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { SessionAbout, SessionEnd } from '../../../schemas/wire/session.ts';
import { pair } from '../../lib/tunnel/support.ts';
import { until } from '../../support/until.ts';
import { callOf, exchangeOf, servicesWith } from '../calls.ts';
import { streamsByHand } from '../streams/looks.ts';
import { okData, quietLog, refusal } from '../support.ts';

const id = '018f0000-0000-7000-8000-000000000001' as ContainerId;
const place = { host: 'h1', agent: 'U', placement: 4 };
const sample = (cpu_millis: number): ContainerStats => ({
  cpu_millis,
  mem_bytes: 1,
  mem_limit: 2,
  net_rx_bytes: null,
  net_tx_bytes: 3,
  pids: 4,
  at: '2026-11-24T12:00:00.000Z',
});

/** A running container; a test says what its owner and its host answer. */
function stage() {
  const said = { owner: () => okData(place), open: (): SessionEnd | undefined => undefined, nowMs: 0 };
  const clock = { nowMs: () => 0, monotonicMs: () => said.nowMs };
  const abouts: SessionAbout[] = [];
  const hosts: ReturnType<typeof pair>[] = [];
  const watches = new StatsWatches(
    {
      open: async (_place, about) => {
        abouts.push(about);
        const end = said.open();
        if (end !== undefined) return Promise.resolve({ ok: false, end });
        const ends = pair();
        hosts.push(ends);
        ends.far.attach(ends.farPort);
        return Promise.resolve({ ok: true, tunnel: ends.near });
      },
    },
    clock,
  );
  const byHand = streamsByHand();
  const services = servicesWith(() => said.owner(), { clock, stats: watches, streams: byHand.streams, log: quietLog });
  const handle = (follow: boolean, head: Partial<RequestHead> = {}) => {
    const call: CallOf<'container.stats'> = callOf('container.stats', {
      params: { id },
      query: { follow },
      exchange: exchangeOf(head),
      deadlineMs: 60_000,
    });
    return Promise.resolve(statsHandler(services)(call));
  };
  /** Sends stats of the session with this number. */
  const tell = async (stats: object, number = 0): Promise<void> => {
    await until('the session is open', () => hosts[number] !== undefined && hosts[number].far.room() > 0);
    hosts[number]?.far.control({ type: 'stats', stats });
  };
  return { said, abouts, hosts, watches, handle, tell, services, ...byHand };
}

t.test('the next sample of its host, and the session ends with the request', async (t) => {
  const { handle, tell, abouts, hosts, watches, services } = stage();
  const answer = handle(false);
  await tell({ ...sample(250), of_a_later_release: true });
  t.match(await answer, { code: 'ok', body: JSON.stringify({ data: sample(250) }) });
  t.same(abouts, [{ tenant: 'acme', id, placement: 4, stats: {} }]);
  t.match(services.asked, [{ lane: 'read', question: { type: 'container.session', tenant: 'acme', id } }]);
  t.match(hosts[0]?.farPort.ends, [{ reason: 'left' }]);
  t.equal(watches.size, 0);
});

t.test('requests at one time share a session; HEAD is a request too', async (t) => {
  const { handle, tell, hosts, watches } = stage();
  const answers = [handle(false), handle(false), handle(true, { method: 'HEAD' })];
  await tell(sample(1));
  for (const answer of answers) t.match(await answer, { code: 'ok' });
  t.equal(hosts.length, 1);
  t.equal(watches.size, 0);
});

t.test('refusals of owner and host are answers over HTTP, for a stream too', async (t) => {
  const { said, handle, followed, watches } = stage();
  for (const follow of [false, true]) {
    for (const code of ['not_found', 'conflict', 'unavailable'] as const) {
      said.owner = () => refusal(code);
      t.match(await handle(follow), { code });
    }
    said.owner = () => okData(place);
    said.open = () => ({ reason: 'lost', message: 'the host did not answer' });
    t.match(await handle(follow), { code: 'unavailable' });
    said.open = () => ({ reason: 'too_many', message: 'the host has 2048 sessions' });
    t.match(await handle(follow), { code: 'rate_limited' });
  }
  t.same(followed, []);
  t.equal(watches.size, 0);
});

t.test('a run that ends meanwhile gives way to the next one, and where none comes it is a conflict', async (t) => {
  const { said, abouts, handle, tell, watches } = stage();
  said.open = () => (abouts.length === 1 ? { reason: 'not_running' } : undefined);
  const answer = handle(false);
  await tell(sample(7));
  t.match(await answer, { code: 'ok', body: /"cpu_millis":7/ });
  t.equal(abouts.length, 2);
  said.open = () => {
    said.nowMs += statsSwapMs / 2;
    return { reason: 'not_running' };
  };
  for (const follow of [false, true]) {
    t.match(await handle(follow), { code: 'conflict', body: /the container does not run/ });
  }
  t.equal(abouts.length, 6);
  t.equal(watches.size, 0);
});

t.test('a host that sends no sample, or bytes in their place', async (t) => {
  const { handle, hosts, watches } = stage();
  const answers = [handle(false), handle(false)];
  await until('the session is open', () => hosts[0] !== undefined && hosts[0].far.room() > 0);
  hosts[0]?.far.control({ type: 'of a later release' });
  hosts[0]?.far.control({ type: 'stats', stats: { ...sample(1), pids: 'many' } });
  hosts[0]?.far.data(0, Buffer.from('x'));
  for (const answer of answers) t.match(await answer, { code: 'unavailable' });
  t.equal(watches.size, 0);
});

t.test('a request waits no longer than its deadline', async (t) => {
  const { said, handle, watches, hosts } = stage();
  said.nowMs = 59_990;
  const answer = handle(false);
  await until('the session is open', () => hosts[0] !== undefined);
  said.nowMs = 60_000;
  t.match(await answer, { code: 'unavailable', body: /no sample in time/ });
  t.equal(watches.size, 0);
});

/** A stream that has its first sample. `end` ends it, as its client does. */
async function following(of: ReturnType<typeof stage>) {
  const { handle, tell, followed, streams } = of;
  let end = (): void => {};
  streams.follow = async (options) => {
    followed.push(options);
    const silence = typeof options.doorbell === 'string' ? () => {} : options.doorbell(() => void rings.count++);
    await new Promise<void>((resolve) => (end = resolve));
    silence();
  };
  const rings = { count: 0 };
  const answer = handle(true);
  await tell(sample(1));
  await until('it streams', () => followed.length > 0);
  return {
    rings,
    show: (): Promise<Showing> => of.show(),
    end: async () => {
      end();
      return answer;
    },
  };
}
const frameOf = (cpu: number) => ({ event: 'stats', data: JSON.stringify(sample(cpu)) });
const nothing = { frames: [], more: false, ended: false };

t.test('a follower is given each sample once, and the newest alone if it is slow', async (t) => {
  const all = stage();
  const { show, end, rings } = await following(all);
  t.same((await show()).frames, [frameOf(1)]);
  t.same(await show(), nothing);
  await all.tell(sample(2));
  t.equal(rings.count, 1);
  await all.tell(sample(3));
  t.same((await show()).frames, [frameOf(3)]);
  all.said.nowMs = statsFreshMs;
  t.equal(await end(), 'streamed');
  t.match(all.hosts[0]?.farPort.ends, [{ reason: 'left' }]);
  t.equal(all.watches.size, 0);
});

t.test('a stream outlives the runs of its container, looks no faster than its bound, and ends with it', async (t) => {
  const all = stage();
  const { show, end, rings } = await following(all);
  const looks = (): number => all.services.asked.length - 1;
  await show();
  all.said.owner = () => refusal('conflict');
  all.said.nowMs = 5_000;
  all.hosts[0]?.far.end({ reason: 'not_running' });
  t.equal(rings.count, 1);
  t.same(await show(), nothing);
  await until('it has looked', () => rings.count === 2);
  t.same(await show(), nothing);
  t.equal(looks(), 1, 'not again at once');
  all.said.owner = () => okData({ ...place, placement: 5 });
  all.said.nowMs += statsLookMs;
  t.same(await show(), nothing);
  await all.tell(sample(9), 1);
  t.same((await show()).frames, [frameOf(9)]);
  t.match(all.abouts[1], { placement: 5 });
  all.said.owner = () => refusal('not_found');
  all.said.nowMs += statsLookMs;
  all.hosts[1]?.far.end({ reason: 'not_running' });
  const before = rings.count;
  await show();
  await until('it has looked', () => rings.count > before);
  t.match(await show(), { frames: [], ended: true });
  t.equal(await end(), 'streamed');
  t.equal(all.watches.size, 0);
});

t.test('a client that leaves while its stream looks leaves no session', async (t) => {
  const all = stage();
  const { show, end } = await following(all);
  all.said.nowMs = 5_000;
  all.hosts[0]?.far.end({ reason: 'lost' });
  await show();
  await end();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(all.watches.size, 0);
  t.ok(all.hosts.every(({ farPort }) => farPort.ends.length === 1));
});
