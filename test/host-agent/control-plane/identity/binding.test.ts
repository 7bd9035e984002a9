import t from 'tap';
import { createBinding } from '../../../../host-agent/control-plane/identity/binding.ts';
import type { Credentials } from '../../../../host-agent/control-plane/identity/credentials.ts';
import type { Offer } from '../../../../host-agent/control-plane/session.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { quietLog } from '../../../actors/support.ts';
import { World as VirtualTime } from '../../../sim/world/time.ts';

interface World {
  /** What the control plane answers, one after another; then always the last. */
  readonly offers: (Offer | undefined)[];
  askBoundInMs: number | undefined;
  silentMs: number;
  readonly hasFallback: boolean;
  readonly isOnTrial: boolean;
}

const plain: World = { offers: [], askBoundInMs: 0, silentMs: 0, hasFallback: false, isOnTrial: false };

function start(given: Partial<World>, syncMs = 100) {
  const world: World = { ...plain, ...given };
  const did: string[] = [];
  let looks = 0;
  const credentials: Partial<Credentials> = {
    askBoundInMs: () => {
      looks += 1;
      return world.askBoundInMs;
    },
    offered: (jwt) => jwt !== undefined,
    isOnTrial: () => world.isOnTrial,
    hasFallback: () => world.hasFallback,
    fallBack: () => void did.push('fall back'),
  };
  const binding = createBinding({
    credentials: credentials as Credentials,
    ask: () => {
      did.push('ask');
      const [next] = world.offers;
      if (world.offers.length > 1) world.offers.shift();
      return Promise.resolve(next);
    },
    line: { close: () => void did.push('close'), silentMs: () => world.silentMs },
    onContact: () => void did.push('contact'),
    renewSession: () => void did.push('renew'),
    syncMs,
    retry: { minMs: 1, maxMs: 1 },
    clock: systemClock,
    log: quietLog,
  });
  return { binding, did, world, looks: () => looks, signal: AbortSignal.timeout(30_000) };
}

t.test('bound credentials that are offered need a new connection', async (t) => {
  const { binding, did, signal } = start({ offers: [undefined, { isKnown: true, jwt: 'bound' }] });
  t.equal(await binding.offerFirst(signal), 'bound');
  t.same(did, ['ask', 'ask', 'contact', 'close'], 'asked again after no answer');
});

t.test('a control plane without bound credentials has started another session for the question', async (t) => {
  const { binding, did, signal } = start({ offers: [{ isKnown: true, jwt: undefined }] });
  t.equal(await binding.offerFirst(signal), 'refused');
  t.same(did, ['ask', 'contact', 'renew']);
});

t.test('a refusal of this host is no contact', async (t) => {
  const { binding, did, signal } = start({ offers: [{ isKnown: false, jwt: undefined }] });
  t.equal(await binding.offerFirst(signal), 'refused');
  t.same(did, ['ask']);
});

t.test('questions without an answer end after half the interval of syncs', async (t) => {
  const { binding, signal } = start({ offers: [undefined] });
  t.equal(await binding.offerFirst(signal), 'unanswered');
});

t.test('nothing is asked while bound credentials are in use, or a back-off runs', async (t) => {
  for (const askBoundInMs of [undefined, 5_000]) {
    const { binding, did, signal } = start({ askBoundInMs });
    t.equal(await binding.offerFirst(signal), 'refused');
    t.same(did, []);
  }
});

for (const [what, isOnTrial, silentMs] of [
  ['bound credentials on trial that get no answer are left', true, 50],
  ['bound credentials that worked before get more time', false, 200],
] as const) {
  t.test(what, async (t) => {
    const silent = start({ askBoundInMs: undefined, hasFallback: true, isOnTrial, silentMs });
    await silent.binding.watch({ isClosed: () => false }, silent.signal);
    t.same(silent.did, ['close', 'fall back']);

    const quiet = start({ askBoundInMs: undefined, hasFallback: true, isOnTrial, silentMs: silentMs - 1 });
    await quiet.binding.watch({ isClosed: () => false }, AbortSignal.timeout(200));
    t.same(quiet.did, []);
  });
}

t.test('it looks seldom while there are no credentials to change to', async (t) => {
  const minuteMs = 60_000;
  const syncMs = 30_000;
  /** @returns how often it looked in a minute, and when it left credentials that got no answer */
  const watched = async (hasFallback: boolean) => {
    const time = new VirtualTime();
    const ending = new AbortController();
    const { binding, world, looks } = start({ askBoundInMs: undefined, hasFallback }, syncMs);
    const found = { looks: 0, leftAtMs: 0 };
    const pass = async (ms: number) => time.until(() => false, ms);
    await time.run(
      () => 1,
      async () => {
        void time.spawn(time.process('agent'), async () => {
          await binding.watch({ isClosed: () => false }, ending.signal);
          found.leftAtMs = time.nowMs;
        });
        await pass(minuteMs - 1);
        found.looks = looks();
        world.silentMs = 2 * syncMs;
        await pass(minuteMs);
        ending.abort();
        await pass(minuteMs);
      },
    );
    return found;
  };
  t.equal((await watched(true)).leftAtMs, minuteMs, 'a fallback is taken as soon as it may be');
  const { looks } = await watched(false);
  t.ok(looks < 10, `${looks} looks`);
});
