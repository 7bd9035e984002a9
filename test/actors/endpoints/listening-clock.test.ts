/** The time in which hosts could be heard; what is made of it is in fleet.test.ts. */
import t from 'tap';
import { ListeningClock } from '../../../actors/endpoints/listening-clock.ts';
import { limits } from '../../../schemas/limits.ts';

const unnoticedMs = limits.deafUnnoticedMs;

function listeningAt(startMs = 1_000_000) {
  let monotonicMs = startMs;
  const clock = new ListeningClock({ nowMs: () => 0, monotonicMs: () => monotonicMs });
  const fromMs = clock.nowMs();
  return {
    clock,
    pass: (ms: number) => void (monotonicMs += ms),
    /** Time for which hosts could be heard since the start. */
    heardMs: () => clock.nowMs() - fromMs,
  };
}

t.test('a loss was there for as long as it takes to notice, but not before the connection', (t) => {
  for (const [name, connectedMs, countedMs] of [
    ['long connected', 60_000, 60_000 - unnoticedMs],
    ['just as long as that', unnoticedMs, 0],
    ['connected a moment ago', 300, 0],
  ] as const) {
    const { clock, pass, heardMs } = listeningAt();
    pass(connectedMs);
    clock.deafen();
    t.equal(heardMs(), countedMs, name);
    pass(1000);
    clock.deafen();
    t.equal(heardMs(), countedMs, `${name}: it hears of it twice`);
    pass(60_000);
    clock.listen();
    t.equal(heardMs(), countedMs, `${name}: connected again`);
    pass(10);
    t.equal(heardMs(), countedMs + 10, `${name}: it goes on`);
  }
  t.end();
});

t.test('of two losses, the second does not take back what was heard before the first', (t) => {
  const { clock, pass, heardMs } = listeningAt();
  pass(60_000);
  clock.deafen();
  pass(5000);
  clock.listen();
  const before = heardMs();
  pass(unnoticedMs / 2);
  clock.deafen();
  t.equal(heardMs(), before, 'only back to the connection between them');
  t.end();
});

t.test('a connection that was renewed before the loss was told counts as lost for that time', (t) => {
  const { clock, pass, heardMs } = listeningAt();
  pass(60_000);
  clock.listen();
  t.equal(heardMs(), 60_000 - unnoticedMs);
  pass(100);
  clock.listen();
  t.equal(heardMs(), 60_000 - unnoticedMs, 'and no further back than the one before');
  t.end();
});

t.test('time in which the process stood is taken off once, also if it was deaf then', (t) => {
  const { clock, pass, heardMs } = listeningAt();
  pass(60_000);
  clock.stood(20_000);
  t.equal(heardMs(), 40_000);
  clock.deafen();
  pass(30_000);
  clock.stood(30_000);
  t.equal(heardMs(), 40_000 - unnoticedMs);
  clock.listen();
  pass(5);
  t.equal(heardMs(), 40_000 - unnoticedMs + 5);
  t.end();
});
