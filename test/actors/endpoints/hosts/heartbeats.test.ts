/** Many actors processes in virtual time: who hears which host, and what all of them know. */
import t from 'tap';
import { directoryEntry } from '../../../../actors/domain/host/decide.ts';
import { Fleet } from '../../../../actors/endpoints/fleet.ts';
import { Heartbeats } from '../../../../actors/endpoints/hosts/heartbeats.ts';
import { rateLimitedLog } from '../../../../lib/rate-limited-log.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { Beat } from '../../../../schemas/wire/host.ts';
import { partitionOf, subjects } from '../../../../schemas/wire/subjects.ts';
import { Nats } from '../../../sim/world/nats.ts';
import { World, type Process } from '../../../sim/world/time.ts';
import { agentOf, hostKey, quietLog } from '../../support.ts';
import { createFractions } from '../../support/random.ts';
import { hostRecord, none } from '../../support/records.ts';

const partitions = 32;

interface Actors {
  readonly process: Process;
  readonly fleet: Fleet;
  readonly heartbeats: Heartbeats;
  readonly owned: Set<number>;
  /** Messages about heartbeats that it received; of these, those of hosts themselves. */
  received: number;
  heard: number;
}

class Ground {
  readonly world = new World();
  readonly nats: Nats;
  readonly all: Actors[] = [];
  readonly hosts: readonly HostKey[];
  /** Fields of each host's heartbeats. */
  readonly says = new Map<HostKey, Partial<Beat>>();
  /** A host of which an agent of an earlier session sends heartbeats too. */
  rival: HostKey | undefined;
  isLost = false;

  constructor(hosts: number) {
    this.hosts = Array.from({ length: hosts }, (_, index) => hostKey(`h${index}`));
    this.nats = new Nats(this.world, {
      delayMs: () => 1,
      copies: (subject) => (this.isLost && subject === subjects.directoryBeats ? 0 : 1),
      fate: () => 'done',
      lateMs: () => 0,
      lagMs: () => 0,
      isBusy: () => false,
      page: () => ({ messages: Infinity, fate: 'whole', lost: [0, 0] }),
    });
  }

  start(count: number, tells = (_: number): boolean => true): void {
    for (let index = 0; index < count; index++) this.#startOne(index, tells(index));
    for (let partition = 0; partition < partitions; partition++) {
      this.all[partition % count]?.owned.add(partition);
    }
    const process = this.world.process('hosts');
    this.world.as(process, () => {
      const nc = this.nats.connect(process);
      const send = (key: HostKey, says: Partial<Beat> | undefined): void => {
        const said: Beat = {
          v: 1,
          session: 1,
          used: none,
          engine: 'e',
          orphans_held: 0,
          volumes_left: 0,
          faults: [],
          room: {},
          ...says,
        };
        nc.publish(subjects.hostBeat(agentOf(key)), JSON.stringify(said));
      };
      const beat = (key: HostKey): void => {
        send(key, this.says.get(key));
        if (key === this.rival) send(key, { session: 0 });
      };
      setInterval(() => this.hosts.forEach(beat), limits.beatIntervalMs);
    });
  }

  #startOne(index: number, tells: boolean): void {
    const process = this.world.process(`actors-${index}`);
    this.world.as(process, () => {
      const { clock } = process;
      const nc = this.nats.connect(process).asClient;
      const fleet = new Fleet({ clock, partitions, hostUnknownMs: limits.hostUnknownMs });
      for (let partition = 0; partition < partitions; partition++) {
        const keys = this.hosts.filter((key) => partitionOf(key, partitions) === partition);
        const entries = keys.map((key) => directoryEntry(hostRecord(key)));
        fleet.learn({ partition, epoch: 1, revision: 1, changes: 1, full: true, entries, removed: [], unreadable: [] });
      }
      const subscribe = (host: HostKey | '*', onHeard: (host: HostKey, beat: Beat) => void) =>
        nc.subscribe(subjects.hostBeat({ host, user: '*' }), {
          callback: (_, message) => {
            actors.received++;
            actors.heard++;
            onHeard(message.subject.split('.')[1] as HostKey, message.json());
          },
        });
      const owned = new Set<number>();
      const processes = (): number => this.running().length;
      const refusals = rateLimitedLog(quietLog, limits.refusalLogMs, clock);
      const heartbeats = new Heartbeats({
        nc,
        fleet,
        partitions,
        owned: () => owned,
        processes,
        subscribe,
        clock,
        refusals,
      });
      const actors: Actors = { process, fleet, heartbeats, owned, received: 0, heard: 0 };
      this.all.push(actors);
      heartbeats.subscribe();
      nc.subscribe(subjects.directoryBeats, { callback: () => void actors.received++ });
      setInterval(() => heartbeats.look(), limits.beatsLookMs);
      if (tells) setInterval(() => heartbeats.tell(), limits.beatIntervalMs);
    });
  }

  running(): Actors[] {
    return this.all.filter(({ process }) => process.state !== 'dead');
  }

  areUp(): boolean {
    return this.running().every(({ fleet }) => this.hosts.every((key) => fleet.condition(key) === 'up'));
  }

  async pass(ms: number): Promise<void> {
    await this.world.until(() => false, ms);
  }

  /** Messages that all processes together receive in a second. */
  async rate(): Promise<number> {
    const sum = (): number => this.all.reduce((total, { received }) => total + received, 0);
    const before = sum();
    await this.pass(10_000);
    return (sum() - before) / 10;
  }
}

async function onGround(hosts: number, body: (ground: Ground) => Promise<void>): Promise<void> {
  const ground = new Ground(hosts);
  await ground.world.run(createFractions(1), () => body(ground));
}

t.test('among a few processes each hears all hosts', async (t) => {
  await onGround(20, async (ground) => {
    ground.start(limits.beatsHeardByAll);
    await ground.pass(2 * limits.beatIntervalMs);
    t.ok(ground.areUp());
    t.equal(await ground.rate(), (ground.hosts.length / (limits.beatIntervalMs / 1000)) * limits.beatsHeardByAll);
  });
});

t.test('among many processes, a heartbeat goes to one', async (t) => {
  await onGround(500, async (ground) => {
    const count = 16;
    ground.start(count);
    await ground.pass(4 * limits.beatIntervalMs);
    t.ok(ground.areUp());
    const perS = ground.hosts.length / (limits.beatIntervalMs / 1000);
    const rate = await ground.rate();
    t.comment(`500 hosts, 16 processes: ${rate} messages/s received, in place of ${perS * count}`);
    t.ok(rate < 2 * perS, String(rate));
    t.ok(ground.areUp());

    const [key = hostKey('none')] = ground.hosts;
    const used = { cpu_millis: 7, mem_bytes: 7, containers: 7 };
    const isKnown = (): boolean => ground.all.every(({ fleet }) => fleet.beat(key)?.used.containers === 7);
    ground.says.set(key, { used });
    t.ok(await ground.world.until(isKnown, 3 * limits.beatIntervalMs), 'what is new is told');
    const more = { ...used, containers: 8 };
    const isHealed = (): boolean => ground.all.every(({ fleet }) => fleet.beat(key)?.used.containers === 8);
    ground.isLost = true;
    ground.says.set(key, { used: more });
    await ground.pass(2 * limits.beatIntervalMs);
    ground.isLost = false;
    t.notOk(isHealed());
    const healedMs = (limits.beatsWholeEvery + 2) * limits.beatIntervalMs;
    t.ok(await ground.world.until(isHealed, healedMs), 'and told again, if the message was lost');
    ground.rival = key;
    await ground.pass(2 * limits.hostUnknownMs);
    t.ok(isHealed());
    t.ok(ground.areUp(), 'heartbeats of an earlier session do not stand in for those of the newest');
  });
});

t.test('hosts whose owner is silent are heard by each process itself', async (t) => {
  await onGround(64, async (ground) => {
    // One process publishes nothing.
    ground.start(9, (index) => index !== 3);
    await ground.pass(5 * limits.beatIntervalMs);
    t.ok(ground.areUp());
    const [first] = ground.all;
    if (first === undefined) return;
    ground.world.kill(first.process);
    let isEverSilent = false;
    await ground.world.until(() => {
      isEverSilent ||= !ground.areUp();
      return isEverSilent;
    }, 3 * limits.hostUnknownMs);
    t.notOk(isEverSilent, 'none seems silent for that');
    const heard = (): number => ground.running().reduce((total, actors) => total + actors.heard, 0);
    const before = heard();
    const [next] = ground.running();
    for (const partition of first.owned) next?.owned.add(partition);
    await ground.pass(10 * limits.beatIntervalMs);
    t.ok(ground.areUp());
    const ofOne = 10 * ground.hosts.length;
    t.ok(heard() - before < 4 * ofOne, 'and no more when another owner tells them');
  });
});
