/** Turns that wait for a load or a lease: their order, which of them run, and the bound. */
import { setImmediate as nextStep } from 'node:timers/promises';
import t from 'tap';
import { WaitingTurns, turnsQueuedLookMs } from '../../../actors/runtime/waiting-turns.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { limits } from '../../../schemas/limits.ts';

let tenants = 0;
const nextTenant = (): string => `t${++tenants}`;

/** Each turn of the event loop runs one of them: a slice is over at each look at its clock. */
function createWaiting() {
  let sliceMs = 0;
  let nowMs = 0;
  let memory: string | undefined;
  let slices = 0;
  const told: string[] = [];
  const turns = new WaitingTurns<string>({
    answering: () => memory,
    clock: { nowMs: () => 0, monotonicMs: () => nowMs },
    slices: createSlices({ monotonicMs: () => (sliceMs += limits.sliceMs), onSlice: () => slices++ }),
    onFault: (error) => void told.push(String(error)),
  });
  return {
    turns,
    pass: (ms: number) => void (nowMs += ms),
    serve: (serving: string | undefined) => void (memory = serving),
    add: (name: string, untilMs = 1000, then: () => void = () => {}, tenant = nextTenant()) =>
      turns.add({
        tenant,
        untilMs,
        run: (serving) => {
          told.push(`${name} on ${serving}`);
          then();
        },
        refuse: () => void told.push(`no ${name}`),
      }),
    slices: () => slices,
    /** Messages since the last call. */
    told: () => told.splice(0),
    steps: async (count: number) => {
      for (let step = 0; step < count; step++) await nextStep();
    },
  };
}

t.test('they run one a step, in their order, and those that come meanwhile at the end', async (t) => {
  const { turns, add, serve, told, steps, slices } = createWaiting();
  add('a', 1000, () => add('c'));
  add('b');
  turns.run();
  await steps(3);
  t.same(told(), [], 'not before there is a memory');
  serve('m');
  turns.run();
  t.same(told(), [], 'not within the call, which may be that of a renewal');
  await steps(1);
  t.same(told(), ['a on m']);
  add('d');
  turns.run();
  t.notOk(turns.isEmpty);
  await steps(1);
  t.same(told(), ['b on m']);
  await steps(9);
  t.same(told(), ['c on m', 'd on m']);
  t.ok(turns.isEmpty);
  t.equal(slices(), 5, 'one for each, and one for the end: a call while they run begins nothing');
});

t.test('if the lease lapses between two turns, the rest wait, and run on the memory of then', async (t) => {
  const { turns, add, serve, told, steps } = createWaiting();
  serve('m1');
  add('a', 1000, () => serve(undefined));
  add('b');
  turns.run();
  await steps(3);
  t.same(told(), ['a on m1']);
  serve('m2');
  await steps(3);
  t.same(told(), [], 'until the renewal says so');
  turns.run();
  await steps(3);
  t.same(told(), ['b on m2']);
});

t.test('one whose sender has given up is neither run nor refused', async (t) => {
  const { turns, add, serve, pass, told, steps } = createWaiting();
  add('late', 50);
  add('in time', 51);
  pass(50);
  serve('m');
  turns.run();
  await steps(5);
  t.same(told(), ['in time on m']);
  t.ok(turns.isEmpty);
});

t.test('one that throws is told and not run again; the next run has the rest', async (t) => {
  const { turns, add, serve, told, steps } = createWaiting();
  serve('m');
  add('a', 1000, () => {
    throw new Error('a bug');
  });
  add('b');
  turns.run();
  await steps(5);
  t.same(told(), ['a on m', 'Error: a bug']);
  turns.run();
  await steps(5);
  t.same(told(), ['b on m']);
});

t.test('too many: those whose senders have given up make room, else the new one is refused', async (t) => {
  const { turns, add, serve, pass, told, steps } = createWaiting();
  add('short', turnsQueuedLookMs + 9);
  for (let count = 1; count < limits.turnsQueued; count++) add('long');
  pass(9);
  add('x');
  t.same(told(), ['no x'], 'while all of them still wait');
  pass(turnsQueuedLookMs);
  add('y');
  add('z');
  t.same(told(), ['no z'], 'the room of one is room for one');
  serve('m');
  turns.run();
  await steps(1);
  t.same(told(), ['long on m'], 'and "short" has made it');
  turns.refuseAll();
  t.match(told(), { length: limits.turnsQueued - 1, 0: 'no long', [limits.turnsQueued - 2]: 'no y' });
});

t.test('one tenant alone has half of the places, and always leaves some for another', (t) => {
  const { turns, add, pass, told } = createWaiting();
  const [soon, long] = [turnsQueuedLookMs, 2 * turnsQueuedLookMs];
  for (let count = 0; count < limits.turnsQueued / 2; count++) add('a', soon, undefined, 'acme');
  add('b', long, undefined, 'acme');
  t.same(told(), []);
  add('c', long, undefined, 'acme');
  t.same(told(), ['no c']);
  for (let count = 0; count < limits.turnsQueued / 4; count++) add('d', long, undefined, 'bolt');
  t.same(told(), []);
  pass(soon);
  add('e', long, undefined, 'acme');
  t.same(told(), [], 'those whose senders have given up made room');
  turns.refuseAll();
  told();
  for (let count = 0; count <= limits.turnsQueued / 2; count++) add('f', long, undefined, 'acme');
  t.same(told(), [], 'and so did those that were refused');
  t.end();
});

t.test('those that find no room do not look at all that wait', (t) => {
  const { turns, pass } = createWaiting();
  let looks = 0;
  const add = (): void =>
    turns.add({
      tenant: nextTenant(),
      get untilMs() {
        looks++;
        return 1000;
      },
      run: () => {},
      refuse: () => {},
    });
  for (let count = 0; count < limits.turnsQueued; count++) add();
  for (let count = 0; count < 512; count++) add();
  t.equal(looks, limits.turnsQueued, 'one look for a whole batch');
  pass(turnsQueuedLookMs);
  add();
  t.equal(looks, 2 * limits.turnsQueued);
  t.end();
});

t.test('when the partition is given away each is refused once, and none runs later', async (t) => {
  const { turns, add, serve, told, steps } = createWaiting();
  serve('m');
  add('a');
  add('b');
  add('c');
  turns.run();
  await steps(1);
  turns.refuseAll();
  t.same(told(), ['a on m', 'no b', 'no c']);
  turns.refuseAll();
  await steps(3);
  turns.run();
  await steps(3);
  t.same(told(), []);
});
