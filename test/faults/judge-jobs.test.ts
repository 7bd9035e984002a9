/** The judgement of jobs notices what it is there for. */
import t from 'tap';
import type { Run } from './engine/programs.ts';
import { runFaults, statusFaults } from './judge-jobs.ts';

const job = { id: 'j1', mayRun: new Map([['a', 1]]), wasStarted: true, wasStopped: false };
const run = (tag: string, by: 'itself' | 'hand' | 'agent', exitCode: number, wasAsked = by === 'agent'): Run => ({
  tenant: 'jobs',
  container: 'j1',
  tag,
  startedMs: 1,
  wasAsked,
  end: { atMs: 2, by, exitCode },
});
const saying = (status: 'stopped' | 'failed' | 'pending' | 'running', more: object = {}) => ({
  status,
  reason: null,
  message: null,
  exit_code: null,
  ...more,
});
const completed = saying('stopped', { reason: 'completed', exit_code: 0 });
const exited = (exit_code: number | null, message = `exited with code ${exit_code}`) =>
  saying('failed', { reason: 'exited', exit_code, message });
const stopped = exited(null, 'stopped before its end; its policy "never" lets it run once');
const unclear = exited(null, 'ended with exit code 0 while its host stopped it, so nobody knows whether it was done');
const nobodyKnows = exited(null, 'removed from its host by hand, so nobody knows whether it has ended');

t.test('a version that ran too often', (t) => {
  t.same(runFaults(job, [run('a', 'itself', 0)]), []);
  t.same(runFaults(job, []), []);
  t.equal(runFaults(job, [run('a', 'agent', 0), run('a', 'itself', 0)]).length, 1, 'twice');
  t.equal(runFaults(job, [run('a', 'itself', 0), run('b', 'itself', 0)]).length, 1, 'one that nobody asked for');
  t.end();
});

t.test('a status that says how the last run ended', (t) => {
  const isHonest = (status: typeof completed, last: Run | undefined, more: object = {}): boolean =>
    statusFaults({ ...job, ...more }, last === undefined ? [] : [run('a', 'itself', 0), last], status).length === 0;
  const asked = { wasStopped: true };

  t.ok(isHonest(completed, run('b', 'itself', 0)));
  t.notOk(isHonest(completed, run('b', 'itself', 3)), 'a failure is no success');
  t.notOk(isHonest(completed, run('b', 'agent', 0)), 'a stop by the platform is not its end');
  t.notOk(isHonest(completed, run('b', 'agent', 0), asked), 'nor one that the tenant asked for');
  t.notOk(isHonest(completed, undefined), 'it never ran');
  t.notOk(isHonest(completed, { ...run('b', 'itself', 0), end: undefined }), 'it runs');

  t.ok(isHonest(exited(3), run('b', 'itself', 3)));
  t.notOk(isHonest(exited(3), run('b', 'itself', 0)));
  t.notOk(isHonest(exited(1), run('b', 'itself', 3)), 'another code');

  t.ok(isHonest(stopped, run('b', 'agent', 143)));
  t.notOk(isHonest(exited(143, 'stopped before its end'), run('b', 'agent', 143)), 'a code that is not its own');
  t.notOk(isHonest(stopped, run('b', 'itself', 0)));
  t.ok(isHonest(unclear, run('b', 'agent', 0)));
  t.notOk(isHonest(unclear, run('b', 'agent', 143)), 'it did not end with 0');
  t.ok(isHonest(unclear, run('b', 'itself', 0, true)), 'it ended by itself while it was being stopped');
  t.notOk(isHonest(unclear, run('b', 'itself', 0)), 'nobody asked it to stop');
  const replaced = { mayRun: new Map(['b', 'c'].map((tag) => [tag, 1])) };
  for (const said of [stopped, unclear]) {
    t.ok(isHonest(said, run('b', 'itself', 0), replaced), 'it ended as another version was to replace it');
    t.notOk(isHonest(said, run('c', 'itself', 0), replaced), 'nothing replaces it');
  }
  t.ok(isHonest(nobodyKnows, run('b', 'hand', 137)));
  t.ok(isHonest(exited(137), run('b', 'hand', 137)), 'the agent saw its end');

  t.ok(isHonest(saying('stopped'), run('b', 'agent', 0), asked));
  t.notOk(isHonest(saying('stopped'), run('b', 'agent', 0)), 'nobody asked it to stop');
  t.ok(isHonest(saying('stopped'), undefined, { wasStarted: false }));
  t.ok(isHonest(saying('stopped'), undefined, asked), 'stopped before its run');
  t.notOk(isHonest(saying('stopped'), undefined), 'its start was lost');
  t.notOk(isHonest(saying('running'), run('b', 'itself', 0)));
  t.end();
});
