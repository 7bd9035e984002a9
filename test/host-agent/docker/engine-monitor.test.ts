/** Outages of the engine, and events that make the agent look again, in virtual time. */
import t from 'tap';
import type { EngineEvent } from '../../../host-agent/docker/answers.ts';
import type { Engine } from '../../../host-agent/docker/engine.ts';
import {
  createEngineMonitor,
  type EngineMonitor,
  type EngineWatcher,
  engineProbesFailed,
} from '../../../host-agent/docker/engine-monitor.ts';
import { quietLog } from '../../actors/support.ts';
import { World } from '../../sim/world/time.ts';
import { owner } from '../support/decisions.ts';

const probeIntervalMs = 5000;
const backoff = { minMs: 1000, maxMs: 60_000 };

interface Scene {
  readonly world: World;
  readonly monitor: EngineMonitor;
  /** Callbacks since the last call, with their times. */
  readonly told: () => string[];
  /** Since when events are heard, or not: with the number of things that happened before. */
  readonly watched: readonly string[];
  /** Answers, or not, from now on. */
  readonly engine: { isUp: boolean; isListing: boolean; onLook: () => void };
  /** Ends the event stream, or says something on it. */
  readonly say: (event: EngineEvent | 'end') => void;
  readonly pass: (ms: number) => Promise<unknown>;
  readonly warnings: string[];
}

async function watching(isUp: boolean, body: (scene: Scene) => Promise<void>): Promise<void> {
  const world = new World();
  const agent = world.process('agent');
  const did: string[] = [];
  const watched: string[] = [];
  const warnings: string[] = [];
  const tell = (what: string) => void did.push(`${world.nowMs}: ${what}`);
  const engine = { isUp, isListing: true, onLook: () => {} };
  let say: (event: EngineEvent | 'end') => void = () => {};
  async function* events(signal: AbortSignal): AsyncGenerator<EngineEvent, void, void> {
    while (!signal.aborted) {
      const event = await new Promise<EngineEvent | 'end'>((resolve) => {
        say = resolve;
        signal.addEventListener('abort', () => resolve('end'), { once: true });
      });
      if (event === 'end') return;
      yield event;
    }
  }
  async function* silence(signal: AbortSignal): AsyncGenerator<EngineEvent, void, void> {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    yield* [];
  }
  const away = async () => Promise.reject(new Error('no engine'));
  const fake: Partial<Engine> = {
    probe: async () => {
      tell(engine.isUp ? 'probed' : 'probed in vain');
      return engine.isUp ? { version: '1' } : away();
    },
    events: async (_labels, signal) => Promise.resolve(events(signal)),
    changes: async (signal) => Promise.resolve(silence(signal)),
  };
  const ending = new AbortController();
  await world.run(
    // Of each pause, all.
    () => 1,
    async () => {
      const monitor = world.as(agent, () =>
        createEngineMonitor({
          engine: fake as Engine,
          owner,
          probeIntervalMs,
          backoff,
          clock: { nowMs: () => world.nowMs, monotonicMs: () => world.nowMs },
          steadyMs: () => world.nowMs,
          log: { ...quietLog, warn: (event) => void warnings.push(event) },
        }),
      );
      const watcher: EngineWatcher = {
        onUp: async () => {
          tell('looks at everything');
          engine.onLook();
          if (!engine.isListing) await away();
        },
        onAway: (sinceMs) => tell(`away since ${sinceMs}`),
        onWatched: (isWatched) => void watched.push(isWatched ? `watched, ${did.length}` : 'unwatched'),
        onEvent: ({ Action }) => tell(`event ${Action}`),
        onChange: () => tell('change'),
      };
      void world.spawn(agent, () => monitor.run(watcher, ending.signal));
      const pass = async (ms: number) => world.until(() => false, ms);
      await body({
        world,
        monitor,
        told: () => did.splice(0),
        watched,
        engine,
        say: (event) => void world.at(world.nowMs, agent, () => say(event)),
        pass,
        warnings,
      });
      ending.abort();
      await pass(backoff.maxMs);
    },
  );
}

t.test('an engine that never answered is away since the start, which is told once', async (t) => {
  await watching(false, async ({ monitor, told, engine, pass }) => {
    await pass(6999);
    t.same(
      told().filter((what) => !what.endsWith('in vain')),
      ['0: away since 0'],
    );
    t.same(monitor.status(), { phase: 'away', sinceMs: 0 });
    engine.isUp = true;
    await pass(1);
    t.same(told(), ['7000: probed', '7000: looks at everything'], 'asked after 1, 2 and 4 seconds');
    t.same(monitor.status(), { phase: 'up', version: '1', sinceMs: 7000, watchedSinceMs: 7000 });
  });
});

t.test('an engine that is up is away after so many probes in a row, and one more', async (t) => {
  await watching(true, async ({ monitor, told, engine, pass }) => {
    await pass(0);
    t.same(told(), ['0: probed', '0: looks at everything']);
    const inVain = engineProbesFailed - 1;
    engine.isUp = false;
    await pass(inVain * probeIntervalMs);
    engine.isUp = true;
    await pass(probeIntervalMs);
    t.equal(monitor.status().phase, 'up', 'an answer in time: the count begins anew');
    engine.isUp = false;
    await pass(inVain * probeIntervalMs);
    t.equal(monitor.status().phase, 'up');
    told();
    await pass(probeIntervalMs);
    const atMs = 2 * engineProbesFailed * probeIntervalMs;
    t.same(told(), [`${atMs}: probed in vain`, `${atMs}: probed in vain`, `${atMs}: away since ${atMs}`]);
    engine.isUp = true;
    await pass(backoff.minMs);
    t.match(monitor.status(), { phase: 'up', sinceMs: atMs + backoff.minMs });
    t.same(told().slice(1), [`${atMs + backoff.minMs}: looks at everything`]);
    engine.isUp = false;
    await pass(engineProbesFailed * probeIntervalMs);
    t.match(told().at(-1), /away since/, 'the next outage is told too');
  });
});

t.test('a call that found it hanging brings the probe forward, also one before the wait', async (t) => {
  await watching(true, async ({ world, monitor, told, engine, pass }) => {
    engine.onLook = () => monitor.suspect();
    await pass(0);
    t.same(told(), ['0: probed', '0: looks at everything', '0: probed']);
    await pass(10);
    world.as(world.stage, () => monitor.suspect());
    await pass(0);
    t.same(told(), ['10: probed']);
    await pass(probeIntervalMs - 1);
    t.same(told(), []);
    await pass(1);
    t.same(told(), [`${10 + probeIntervalMs}: probed`], 'then at the interval again');
  });
});

t.test('an event stream that ends is no outage: it is read again, and everything looked at', async (t) => {
  await watching(true, async ({ monitor, told, say, pass, warnings }) => {
    await pass(0);
    const before = monitor.status();
    told();
    say('end');
    await pass(backoff.minMs);
    t.same(told().slice(-2), ['1000: probed', '1000: looks at everything']);
    t.same(monitor.status(), before);
    t.same(warnings, ['engine_events_lost'], 'an operator sees it');
    say('end');
    await pass(backoff.minMs);
    t.equal(told().at(-1), '2000: looks at everything', 'after the same pause: the look had succeeded');
  });
});

t.test('an engine that answers and cannot list is asked with growing pauses, and is not away', async (t) => {
  await watching(true, async ({ monitor, told, engine, pass }) => {
    engine.isListing = false;
    await pass(6999);
    const looks = () => told().filter((what) => what.endsWith('everything'));
    t.same(looks(), ['0: looks at everything', '1000: looks at everything', '3000: looks at everything']);
    t.equal(monitor.status().phase, 'up');
    engine.isListing = true;
    await pass(1);
    t.same(looks(), ['7000: looks at everything']);
    await pass(60_000);
    t.same(looks(), [], 'once it could');
  });
});

t.test('events are heard before everything is looked at, and until the stream ends', async (t) => {
  await watching(true, async ({ told, say, pass, watched }) => {
    await pass(0);
    t.same(told(), ['0: probed', '0: looks at everything']);
    t.same(watched, ['watched, 1'], 'after the probe, before the look');
    say({ Action: 'die' });
    await pass(1);
    t.same(told(), ['0: event die']);
    say('end');
    await pass(0);
    t.same(watched.slice(1), ['unwatched']);
  });
});
