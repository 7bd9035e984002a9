/** The progress of pulls is reported at a bounded rate, and only when it has changed. */
import { setImmediate as settled } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { reportPulls } from '../../../host-agent/link/pull-reports.ts';
import { createNotify } from '../../../lib/notify.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { hours } from '../../../schemas/limits/units.ts';
import type { PullItem, Report } from '../../../schemas/wire/host.ts';
import { quietLog } from '../../actors/support.ts';
import { until } from '../../support/until.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

const item = (id: string, bytes: number, tenant = 'acme'): PullItem => ({
  tenant: tenant as TenantId,
  id: id as ContainerId,
  generation: 2,
  layers: 1,
  bytes,
  total: 100,
});

function start(t: Test, { everyMs = 1, partitions = 1 } = {}) {
  const ending = new AbortController();
  const moves = createNotify();
  const state = { pulls: [] as PullItem[], session: 7 as number | undefined, isDeaf: false };
  const sent: Report[] = [];
  const done = reportPulls(
    {
      pulls: () => state.pulls,
      moved: (signal) => moves.wait(undefined, signal),
      session: () => (state.session === undefined ? undefined : { session: state.session, partitions }),
      sender: { host: 'h1' as HostKey, user: 'U' },
      request: (_, payload) => {
        sent.push(JSON.parse(payload) as Report);
        if (state.isDeaf) return Promise.reject(new Error('timeout'));
        return Promise.resolve(Buffer.from(JSON.stringify({ ...protocolFields, ok: true })));
      },
      everyMs,
      log: quietLog,
    },
    ending.signal,
  );
  t.teardown(async () => {
    ending.abort();
    await done;
  });
  const move = (...pulls: PullItem[]): void => {
    state.pulls = pulls;
    moves.notify();
  };
  const told = () => sent.map(({ pulls = [] }) => pulls.map(({ id, bytes }) => `${id} ${bytes}`).join(', '));
  const tells = (expected: string) =>
    until(
      () => `${expected} in ${told().join('; ')}`,
      () => told().at(-1) === expected,
    );
  return { state, sent, move, told, tells };
}

t.test('only what changed is told, and nothing while nothing moves', async (t) => {
  const { move, sent, tells, told } = start(t);
  move(item('a', 1), item('b', 1));
  await tells('a 1, b 1');
  move(item('a', 1), item('b', 2));
  await tells('b 2');
  move(item('a', 1), item('b', 2));
  move(item('a', 1));
  move(item('a', 3));
  await tells('a 3');
  t.same(told(), ['a 1, b 1', 'b 2', 'a 3']);
  t.match(sent[0], { session: 7, partition: 0, items: [] });
});

t.test('changes meanwhile go together, after the pause', async (t) => {
  const moving = async (everyMs: number) => {
    const started = start(t, { everyMs });
    started.move(item('a', 1));
    await started.tells('a 1');
    for (let bytes = 2; bytes < 9; bytes++) started.move(item('a', bytes));
    return started;
  };
  const long = await moving(hours);
  await settled();
  t.same(long.told(), ['a 1'], 'not within the pause');
  const short = await moving(1);
  await short.tells('a 8');
  t.same(short.told(), ['a 1', 'a 8']);
});

t.test('progress that no owner heard is reported again, as it is then', async (t) => {
  const { state, move, told, tells } = start(t);
  state.session = undefined;
  move(item('a', 1));
  await settled();
  t.same(told(), [], 'not before there is a session');
  state.isDeaf = true;
  state.session = 8;
  await tells('a 1');
  state.pulls = [item('a', 2)];
  await tells('a 2');
  state.isDeaf = false;
  const before = told().length;
  await until('an answer', () => told().length > before);
  await settled();
  const after = told().length;
  move(item('a', 3));
  await tells('a 3');
  t.ok(told().length - after <= 2);
});

t.test('each partition gets its own, and no more than a report holds', async (t) => {
  const { move, sent } = start(t, { everyMs: 60_000, partitions: 4 });
  const many = Array.from({ length: limits.reportItems + 5 }, (_, index) => item(`many${index}`, 1, 'acme'));
  move(...many, item('other', 1, 'b'));
  await until('both', () => sent.length === 2);
  t.same(sent.map(({ pulls = [] }) => pulls.length).toSorted(), [1, limits.reportItems]);
  t.equal(new Set(sent.map(({ partition }) => partition)).size, 2);
});
