/**
 * Placement in a large fleet: the number of hosts examined, and the part that ports and disk play.
 * host.test.ts has the rest of the choice of a host.
 */
import fc from 'fast-check';
import t from 'tap';
import { choose } from '../../../actors/domain/placement.ts';
import type { FleetHost } from '../../../actors/domain/turn.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { containerId } from '../support.ts';
import { fleetHost, fleetOf, none, region, roomy } from '../support/records.ts';

const need = { id: containerId(), cpuMillis: 100, memBytes: 100, ports: 1, diskBytes: 100 };
const { placementAllHosts: few, placementSampleHosts: sample, placementDoubtfulHosts: patience } = limits;
const keyOf = (index: number) => `n${index}` as HostKey;

/** Places in a fleet; `place` counts from where the look at this container's fleet begins. */
function placedIn(
  count: number,
  hostAt: (place: number) => Partial<FleetHost>,
  isExcluded: (place: number) => boolean = () => false,
) {
  const start = count <= few ? 0 : partitionOf(need.id, count);
  const placeOf = (index: number) => (index - start + count) % count;
  const indexes = Array.from({ length: count }, (_, index) => index);
  const fleet = fleetOf(...indexes.map((index) => fleetHost(keyOf(index), hostAt(placeOf(index)))));
  let looks = 0;
  const counting: typeof fleet = { ...fleet, host: (key) => (looks++, fleet.host(key)) };
  const excluded = new Set(indexes.filter((index) => isExcluded(placeOf(index))).map(keyOf));
  const found = choose(counting, [region('default')], need, excluded);
  return { looks, place: found === undefined ? undefined : placeOf(Number(found.key.slice(1))) };
}

const full = { capacity: roomy, used: roomy };
const doubtful = { isSound: false };
const tight = { freeDiskBytes: need.diskBytes - 1 };
const half = { used: { ...none, cpu_millis: roomy.cpu_millis / 2 } };

t.test('the number of hosts examined, and the one chosen', (t) => {
  const far = patience + 50;
  const rows: [string, ReturnType<typeof placedIn>, { looks: number; place: number | undefined }][] = [
    [
      'few: all, the emptiest',
      placedIn(few, (place) => (place === few - 1 ? {} : half)),
      { looks: few, place: few - 1 },
    ],
    ['many: a sample', placedIn(few + 1, () => ({})), { looks: sample, place: 0 }],
    [
      'the emptiest of the sample',
      placedIn(far, (place) => (place === sample - 1 ? {} : half)),
      { looks: sample, place: sample - 1 },
    ],
    ['not one behind it', placedIn(far, (place) => (place === sample ? {} : half)), { looks: sample, place: 0 }],
    ['until one fits', placedIn(far, (place) => (place === 90 ? {} : full)), { looks: 91, place: 90 }],
    ['all, where none fits', placedIn(far, () => full), { looks: far, place: undefined }],
    [
      'further, while only doubtful ones fit',
      placedIn(far, (place) => (place === patience - 1 ? half : doubtful)),
      { looks: patience, place: patience - 1 },
    ],
    [
      'further, while the disks of all that fit are short',
      placedIn(far, (place) => (place === patience - 1 ? half : tight)),
      { looks: patience, place: patience - 1 },
    ],
    ['but not for ever', placedIn(far, (place) => (place === patience ? {} : doubtful)), { looks: patience, place: 0 }],
    [
      'a doubtful one far away',
      placedIn(far, (place) => (place === far - 1 ? doubtful : full)),
      { looks: far, place: far - 1 },
    ],
    [
      'excluded ones are passed over',
      placedIn(
        far,
        () => ({}),
        (place) => place < sample,
      ),
      { looks: 1, place: sample },
    ],
  ];
  for (const [name, found, expected] of rows) t.same(found, expected, name);
  t.end();
});

t.test('the hosts of all regions of a tenant count', (t) => {
  const [here, there] = [region('here'), region('there')];
  const fleet = fleetOf(
    fleetHost(keyOf(1), { region: here, ...half }),
    fleetHost(keyOf(2), { region: there }),
    fleetHost(keyOf(3), { region: region('elsewhere') }),
  );
  t.equal(choose(fleet, [here, there], need, new Set())?.key, keyOf(2));
  t.equal(choose(fleet, [here], need, new Set())?.key, keyOf(1));
  t.end();
});

t.test('free disk: first where all that it may write has room', (t) => {
  const here = [region('default')];
  const pair = (first: Partial<FleetHost>, second: Partial<FleetHost>) => {
    const fleet = fleetOf(fleetHost(keyOf(1), first), fleetHost(keyOf(2), second));
    return choose(fleet, here, need, new Set())?.key;
  };
  const enough = { freeDiskBytes: need.diskBytes };
  t.equal(pair(tight, { ...half, ...enough }), keyOf(2), 'however full');
  t.equal(pair(tight, half), keyOf(2), 'a host that does not say may have room');
  t.equal(pair(enough, half), keyOf(1));
  for (const more of [doubtful, { condition: 'unheard' as const }]) {
    t.equal(
      pair({ ...tight, ...half }, { ...enough, ...more }),
      keyOf(1),
      `before one that is ${JSON.stringify(more)}`,
    );
    t.equal(pair({ ...tight, ...more }, { ...half, ...more }), keyOf(2), 'among those, too');
  }
  t.equal(pair(tight, full), keyOf(1), 'a limit is no reservation');
  t.end();
});

t.test('no host is chosen that lacks ports, and one is while any has them', (t) => {
  const host = fc.record({
    condition: fc.constantFrom('up' as const, 'unheard' as const, 'silent' as const),
    isSound: fc.boolean(),
    freePorts: fc.option(fc.nat({ max: 4 })),
    freeDiskBytes: fc.option(fc.nat({ max: 200 })),
    used: fc.constantFrom(none, half.used, roomy),
  });
  fc.assert(
    fc.property(fc.array(host, { maxLength: 50 }), fc.nat({ max: 4 }), (all, ports) => {
      const hosts = all.map((each, index) => fleetHost(keyOf(index), each));
      const found = choose(fleetOf(...hosts), [region('default')], { ...need, ports }, new Set());
      const canTake = hosts.filter(
        ({ condition, freePorts, used }) =>
          condition !== 'silent' && used !== roomy && (freePorts === null || freePorts >= ports),
      );
      return found === undefined ? canTake.length === 0 : canTake.includes(found);
    }),
  );
  t.end();
});
