/** Ends of runs that the agent attributes to a lack of memory. */
import t from 'tap';
import type { Inspection } from '../../../host-agent/docker/answers.ts';
import type { CachedEngine } from '../../../host-agent/docker/cached-engine.ts';
import { OomKills, oomLooksUnread } from '../../../host-agent/usage/oom-kills.ts';

const dockerId = 'd'.repeat(64);
const starts = ['2026-11-25T12:00:00Z', '2026-11-25T13:00:00Z'];

/** One container, of which the engine never says that it was out of memory. */
function stage() {
  /** `own`: undefined while its files can't be read. */
  const kernel = { machine: 7, own: 0 as number | undefined };
  let run = -1;
  let State: Inspection['State'] | undefined;
  const kills = new OomKills({ oomKills: () => kernel.own, machineOomKills: () => kernel.machine });
  const inspect = () => Promise.resolve(State && { Id: dockerId, State, Config: { Labels: {} }, NetworkSettings: {} });
  const ok = () => Promise.resolve();
  const listAll = () => Promise.resolve(State === undefined ? [] : [{ Id: dockerId }]);
  const parts = { inspect, listAll, start: ok, stop: ok, heard: () => undefined };
  const engine = kills.over(parts as unknown as CachedEngine);
  return {
    kernel,
    engine,
    look: () => kills.look(),
    start: async () => {
      kernel.own = 0;
      await engine.start(dockerId);
      run += 1;
      State = {
        Status: 'running',
        Pid: 70 + run,
        OOMKilled: false,
        ExitCode: 0,
        Error: '',
        StartedAt: starts[run] ?? '',
        FinishedAt: '0001-01-01T00:00:00Z',
      };
    },
    seen: async () => (await engine.inspect(dockerId))?.State.OOMKilled,
    /** The engine has removed its cgroup when it tells of the end. */
    end: (ExitCode: number, isHeard = true) => {
      kernel.own = undefined;
      if (State !== undefined) State = { ...State, Status: 'exited', ExitCode };
      const Actor = { ID: dockerId, Attributes: { exitCode: String(ExitCode) } };
      if (isHeard) engine.heard({ Action: 'die', Actor });
    },
    /** The kernel kills a process, of this container or of another. */
    kill: (isOwn: boolean) => {
      kernel.machine += 1;
      if (isOwn && kernel.own !== undefined) kernel.own += 1;
    },
  };
}
type Stage = ReturnType<typeof stage>;

const cases: readonly [name: string, isOom: boolean, story: (on: Stage) => unknown][] = [
  ['its first process was killed at once', true, async (on) => (await on.start(), on.kill(true), on.end(137))],
  ['the event of the end is lost', true, async (on) => (await on.start(), on.kill(true), on.end(137, false))],
  ['nothing was killed for want of memory', false, async (on) => (await on.start(), on.end(137))],
  [
    'killed elsewhere long before',
    false,
    async (on) => {
      await on.start();
      await on.seen();
      on.kill(false);
      await on.look();
      on.end(137);
    },
  ],
  [
    'a process of it was killed, and it fails later',
    true,
    async (on) => {
      await on.start();
      await on.seen();
      on.kill(true);
      await on.look();
      on.end(3);
    },
  ],
  [
    'a process of it was killed, and it succeeds later',
    false,
    async (on) => {
      await on.start();
      await on.seen();
      on.kill(true);
      await on.look();
      on.end(0);
    },
  ],
  ['it fails beside a kill elsewhere', false, async (on) => (await on.start(), on.kill(false), on.end(1))],
  [
    'the agent stops it beside a kill elsewhere',
    false,
    async (on) => {
      await on.start();
      await on.engine.stop(dockerId, 0);
      on.kill(false);
      on.end(137);
    },
  ],
  [
    'a kill after its end',
    false,
    async (on) => {
      await on.start();
      on.end(137);
      on.kill(false);
    },
  ],
  [
    'killed in the run before',
    false,
    async (on) => {
      await on.start();
      on.kill(true);
      on.end(137);
      await on.seen();
      await on.start();
      await on.seen();
      on.end(137);
    },
  ],
  [
    'its cgroup can’t be read any more, because it has ended',
    true,
    async (on) => {
      await on.start();
      await on.seen();
      on.kill(true);
      on.kernel.own = undefined;
      await on.look();
      await on.look();
      on.end(137);
    },
  ],
  [
    'its cgroup can’t be read at all, and it ran on after a kill elsewhere',
    false,
    async (on) => {
      await on.start();
      on.kernel.own = undefined;
      await on.seen();
      on.kill(false);
      for (let looks = 0; looks < oomLooksUnread; looks++) await on.look();
      on.end(137);
    },
  ],
];
for (const [name, isOom, story] of cases) {
  t.test(`${name} → ${isOom ? 'out of memory' : 'not'}`, async (t) => {
    const on = stage();
    await story(on);
    t.equal(await on.seen(), isOom);
    on.kill(false);
    t.equal(await on.seen(), isOom, 'and so it stays');
  });
}

t.test('a run that began before the agent did', async (t) => {
  const on = stage();
  await on.start();
  const engine = new OomKills({ oomKills: () => 2, machineOomKills: () => 9 }).over(on.engine);
  await engine.inspect(dockerId);
  on.end(1);
  t.equal((await engine.inspect(dockerId))?.State.OOMKilled, true);
});
