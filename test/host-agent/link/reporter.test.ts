import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createReporter, type ReporterParts } from '../../../host-agent/link/reporter.ts';
import { describe } from '../../../host-agent/reconcile/describe.ts';
import { absent } from '../../../host-agent/docker/observed.ts';
import { createLog } from '../../../lib/log.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { ReportAnswer } from '../../../schemas/wire/host.ts';
import { restartState, seen, up, wanted } from '../support/decisions.ts';
import { until } from '../../support/until.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

const log = createLog('test', 'silent');

interface Sent {
  session: number;
  partition: number;
  items: { id: string; seq: number; prepared?: number; observation: { status: string } }[];
}
const start = (t: Test, answer: (sent: Sent, count: number) => ReportAnswer | 'silence') => {
  const sent: Sent[] = [];
  const stale: number[] = [];
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  const parts: ReporterParts = {
    sender: { host: 'h1' as HostKey, user: 'U' },
    backoff: { minMs: 5, maxMs: 20 },
    metrics: { report: () => undefined },
    log,
    signal: ending.signal,
    onContact: () => undefined,
    request: (_, payload) => {
      const report = JSON.parse(payload) as Sent;
      sent.push(report);
      const answered = answer(report, sent.length);
      if (answered === 'silence') return Promise.reject(new Error('timeout'));
      return Promise.resolve(Buffer.from(JSON.stringify({ ...protocolFields, ...answered })));
    },
  };
  const reporter = createReporter(parts);
  reporter.events.on('stale', () => stale.push(1));
  return { reporter, sent, stale };
};
const observed = (name: string, status: 'stopped' | 'running' | 'pending' = 'running', of = 'acme') => {
  const look = { stopped: absent, pending: absent, running: seen(up) }[status];
  const description = describe(wanted(status === 'stopped' ? 'stopped' : 'running'), look, restartState());
  if (description === undefined) throw new Error('described');
  return { tenant: of as TenantId, id: name as ContainerId, generation: 3, description };
};
const ids = (sent: Sent[]) => sent.map(({ items }) => items.map((item) => item.id));

t.test('observations set together are sent together; an unchanged one is not sent again', async (t) => {
  const { reporter, sent } = start(t, () => ({ ok: true }));
  reporter.restart({ session: 7, partitions: 1 });
  reporter.set(observed('a'));
  reporter.set(observed('b'));
  await until('a report', () => sent.length === 1 || undefined);
  t.same(ids(sent), [['a', 'b']]);
  reporter.set(observed('a'));
  reporter.set(observed('b', 'stopped'));
  await until('another', () => sent.length === 2 || undefined);
  t.same(ids(sent).at(-1), ['b']);
  reporter.repeat();
  await until('everything again', () => sent.length === 3 || undefined);
  t.same(ids(sent).at(-1), ['a', 'b']);
  t.same(
    sent.flatMap(({ items }) => items.map(({ seq }) => seq)),
    [1, 2, 3, 1, 3],
    'a repetition keeps its number',
  );
});

t.test('a report that the owner cannot take now goes again, behind all others', async (t) => {
  const isBack = { value: false };
  const { reporter, sent } = start(t, ({ items }) => {
    const later = items.flatMap(({ id }, place) => (id.startsWith('late') && !isBack.value ? [place] : []));
    return later.length === 0 ? { ok: true } : { ok: false, error: 'unavailable', later };
  });
  reporter.restart({ session: 7, partitions: 1 });
  for (const name of ['late a', 'b', 'late c']) reporter.set(observed(name));
  await until('what was taken goes no more', () => sent.length >= 3 || undefined);
  t.same(ids(sent).slice(0, 3), [
    ['late a', 'b', 'late c'],
    ['late a', 'late c'],
    ['late a', 'late c'],
  ]);
  t.same(new Set(sent.flatMap(({ items }) => items.map(({ seq }) => seq))), new Set([1, 2, 3]), 'with their numbers');
  for (let index = 0; index < limits.reportItems; index++) reporter.set(observed(`late ${index}`));
  await until(
    'all that is late was sent',
    () =>
      ids(sent)
        .flat()
        .includes(`late ${limits.reportItems - 1}`) || undefined,
  );
  reporter.set(observed('new'));
  await until('it waits for none of them', () => ids(sent).some((batch) => batch.includes('new')) || undefined);
  isBack.value = true;
  const before = sent.length;
  await until(
    'all are taken',
    () => new Set(ids(sent.slice(before)).flat()).size >= limits.reportItems + 2 || undefined,
  );
});

t.test('a container prepared for another placement is reported again, in the same words', async (t) => {
  const { reporter, sent } = start(t, () => ({ ok: true }));
  reporter.restart({ session: 7, partitions: 1 });
  for (const prepared of [4, 5]) {
    reporter.set({ ...observed('a', 'stopped'), prepared });
    await until('a report', () => sent.at(-1)?.items[0]?.prepared === prepared || undefined);
  }
  reporter.set(observed('a', 'stopped'));
  await until('another', () => sent.length === 3 || undefined);
  t.equal(sent.at(-1)?.items[0]?.prepared, undefined);
});

t.test('a forgotten container has no place among those that wait, whether it was sent or not', async (t) => {
  const { reporter, sent } = start(t, (_, count) => {
    // While its report is under way.
    if (count === 1) reporter.forget('sent' as ContainerId);
    return { ok: true };
  });
  reporter.restart({ session: 7, partitions: 1 });
  reporter.set(observed('sent'));
  await until('a report', () => sent.length === 1 || undefined);
  reporter.set(observed('waiting'));
  reporter.forget('waiting' as ContainerId);
  for (const name of ['other', 'waiting', 'sent']) reporter.set(observed(name));
  await until('another', () => sent.length === 2 || undefined);
  t.same(ids(sent), [['sent'], ['other', 'waiting', 'sent']]);
});

t.test('without an answer, the newest observation is sent with a higher seq', async (t) => {
  const { reporter, sent } = start(t, ({ items }) =>
    items[0]?.observation.status === 'stopped' ? { ok: true } : 'silence',
  );
  reporter.restart({ session: 1, partitions: 1 });
  reporter.set(observed('a', 'running'));
  await until('several attempts', () => sent.length > 2 || undefined);
  reporter.set(observed('a', 'stopped'));
  await until('the newest', () => sent.at(-1)?.items[0]?.observation.status === 'stopped' || undefined);
  const count = sent.length;
  await delay(50);
  t.equal(sent.length, count, 'acknowledged, and not sent again');
  t.same(
    [...new Set(sent.flatMap(({ items }) => items.map(({ seq, observation }) => `${seq} ${observation.status}`)))],
    ['1 running', '2 stopped'],
  );
  reporter.restart({ session: 2, partitions: 1 });
  await until('everything in the new session', () => sent.length === count + 1 || undefined);
  t.equal(sent.at(-1)?.items[0]?.seq, 1, 'numbered from the beginning in a new session');
});

t.test('partitions do not wait for one another', async (t) => {
  const { reporter, sent } = start(t, ({ partition }) => (partition === 0 ? 'silence' : { ok: true }));
  reporter.restart({ session: 1, partitions: 2 });
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) reporter.set(observed(name, 'running', name));
  await until('the other partition', () => sent.some(({ partition }) => partition === 1) || undefined);
});

t.test('an invalid observation blocks no other', async (t) => {
  const { reporter, sent } = start(t, ({ items }) =>
    items.some((item) => item.id === 'bad') ? { ok: false, error: 'invalid' } : { ok: true },
  );
  reporter.restart({ session: 1, partitions: 1 });
  for (const name of ['a', 'bad', 'c']) reporter.set(observed(name));
  await until('four reports', () => sent.length === 4 || undefined);
  await delay(50);
  t.same(ids(sent), [['a', 'bad', 'c'], ['a'], ['bad'], ['c']]);
});

t.test('after a stale session, the reporter asks for a new one and reports everything in it', async (t) => {
  const { reporter, sent, stale } = start(t, ({ session }) =>
    session === 1 ? { ok: false, error: 'stale_session' } : { ok: true },
  );
  reporter.restart({ session: 1, partitions: 1 });
  reporter.set(observed('a'));
  await until('word of it', () => stale.length > 0 || undefined);
  reporter.restart({ session: 2, partitions: 1 });
  const last = await until('a report in the new session', () => sent.find(({ session }) => session === 2));
  t.match(last.items, [{ id: 'a', seq: 1 }]);
});

t.test('a state that passes is not reported; one that stays is', async (t) => {
  const { reporter, sent } = start(t, () => ({ ok: true }));
  const words = () => sent.flatMap(({ items }) => items.map((item) => `${item.id} ${item.observation.status}`));
  reporter.restart({ session: 1, partitions: 1 });
  reporter.set(observed('a', 'pending'));
  reporter.set(observed('b', 'pending'));
  reporter.set(observed('a', 'running'));
  await until('the first', () => words().length === 1 || undefined);
  t.same(words(), ['a running'], 'what it waited for is there');
  await until('the other', () => words().length === 2 || undefined);
  t.same(words(), ['a running', 'b pending']);
  reporter.set(observed('c', 'pending'));
  reporter.forget('c' as ContainerId);
  reporter.set(observed('d', 'pending'));
  await until('the next', () => words().length > 2 || undefined);
  t.same(words().slice(2), ['d pending'], 'what is forgotten meanwhile is not reported');
  reporter.set(observed('e', 'pending'));
  reporter.restart({ session: 2, partitions: 1 });
  await until('everything', () => sent.at(-1)?.session === 2 || undefined);
  t.match(words().slice(3), ['a running', 'b pending', 'd pending', 'e pending'], 'a new session waits for nothing');
});
