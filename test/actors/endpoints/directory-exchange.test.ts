/** Many actors processes in virtual time, which tell each other their hosts. */
import t, { type Test } from 'tap';
import { directoryEntry } from '../../../actors/domain/host/decide.ts';
import { DirectoryExchange, type DirectorySource } from '../../../actors/endpoints/directory-exchange.ts';
import { Fleet } from '../../../actors/endpoints/fleet.ts';
import { rateLimitedLog } from '../../../lib/rate-limited-log.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { Nats } from '../../sim/world/nats.ts';
import { World, type Process } from '../../sim/world/time.ts';
import { hostKey, quietLog } from '../support.ts';
import { createFractions } from '../support/random.ts';
import { hostRecord, stateOf } from '../support/records.ts';

const second = 1_000;

/** Counts what is published. */
class CountingWorld extends World {
  readonly #sent = new Map<string, { messages: number; bytes: number }>();

  override trace(process: string, subject: string, bytes: number): void {
    const before = this.sent(subject);
    this.#sent.set(subject, { messages: before.messages + 1, bytes: before.bytes + bytes });
    super.trace(process, subject, bytes);
  }

  sent(subject: string): { readonly messages: number; readonly bytes: number } {
    return this.#sent.get(subject) ?? { messages: 0, bytes: 0 };
  }

  forget(): void {
    this.#sent.clear();
  }
}

interface Owned extends DirectorySource {
  epoch: number;
  committed: number;
}

interface Actors {
  readonly process: Process;
  readonly fleet: Fleet;
  readonly exchange: DirectoryExchange;
  readonly owned: Map<number, Owned>;
  leave: () => void;
}

class Ground {
  readonly world = new CountingWorld();
  readonly nats: Nats;
  readonly all: Actors[] = [];
  readonly hosts: readonly HostKey[];
  readonly partitions: number;
  /** True if a message to all processes is lost. */
  isLost: (subject: string) => boolean = () => false;

  constructor({ hosts, partitions }: { readonly hosts: number; readonly partitions: number }) {
    this.partitions = partitions;
    this.hosts = Array.from({ length: hosts }, (_, index) => hostKey(`h${index}`));
    this.nats = new Nats(this.world, {
      delayMs: () => 1,
      copies: (subject) => (this.isLost(subject) ? 0 : 1),
      fate: () => 'done',
      lateMs: () => 0,
      lagMs: () => 0,
      isBusy: () => false,
      page: () => ({ messages: Infinity, fate: 'whole', lost: [0, 0] }),
    });
  }

  hostsOf(partition: number): HostKey[] {
    return this.hosts.filter((key) => partitionOf(key, this.partitions) === partition);
  }

  async start(count: number): Promise<void> {
    for (let index = 0; index < count; index++) this.startOne();
    for (let partition = 0; partition < this.partitions; partition++)
      this.own(this.of(partition % count), partition, 1);
    await this.pass(second);
  }

  startOne(): Actors {
    const process = this.world.process(`actors-${this.all.length}`);
    return this.world.as(process, () => {
      const { clock } = process;
      const nc = this.nats.connect(process).asClient;
      const fleet = new Fleet({ clock, partitions: this.partitions, hostUnknownMs: limits.hostUnknownMs });
      const exchange = new DirectoryExchange({
        nc,
        cluster: { id: 'c', partitions: this.partitions, format: 1 },
        fleet,
        slices: createSlices({ monotonicMs: () => clock.monotonicMs() }),
        log: quietLog,
        refusals: rateLimitedLog(quietLog, limits.refusalLogMs, clock),
      });
      const actors: Actors = { process, fleet, exchange, owned: new Map(), leave: () => {} };
      this.all.push(actors);
      this.join(actors);
      exchange.refresh();
      setInterval(() => exchange.tell(), limits.syncIntervalMs);
      return actors;
    });
  }

  /** Connects a process: its NATS server is back. */
  join(actors: Actors): void {
    const subscriptions = actors.exchange.subscribe();
    actors.leave = () => subscriptions.forEach((each) => each.unsubscribe());
  }

  own(actors: Actors, partition: number, epoch: number): void {
    const view = stateOf(...this.hostsOf(partition).map((key) => hostRecord(key)));
    const owned = { number: partition, epoch, committed: 1, view };
    actors.owned.set(partition, owned);
    this.world.as(actors.process, () => actors.exchange.load(owned));
  }

  /** The owner commits that this host is, or is not, cordoned. */
  cordon(key: HostKey, cordoned = true): void {
    for (const { process, exchange, owned } of this.all) {
      const partition = owned.get(partitionOf(key, this.partitions));
      if (partition === undefined || process.state === 'dead') continue;
      partition.committed++;
      this.world.as(process, () => exchange.change(partition, key, directoryEntry(hostRecord(key, { cordoned }))));
    }
  }

  /** Processes that lost their server reconnect within two seconds, as the client does. */
  async reconnect(lost: readonly Actors[]): Promise<void> {
    const startMs = this.world.nowMs;
    lost.forEach((actors, index) => {
      this.world.at(startMs + (2 * second * index) / lost.length, actors.process, () => {
        this.join(actors);
        actors.exchange.refresh();
        actors.exchange.tell();
      });
    });
    await this.pass(5 * second);
  }

  of(index: number): Actors {
    const actors = this.all[index];
    if (actors === undefined) throw new Error(`no process ${index}`);
    return actors;
  }

  /** True if every process sees this host in the state `cordoned`. */
  see(key: HostKey, cordoned = true): boolean {
    return this.all.every(({ fleet }) => fleet.host(key)?.schedulable === !cordoned);
  }

  knowAll(): boolean {
    return this.all.every(({ fleet }) => [...fleet.hosts()].length === this.hosts.length);
  }

  async pass(ms: number): Promise<void> {
    await this.world.until(() => false, ms);
  }
}

async function onGround(
  size: { readonly hosts: number; readonly partitions: number },
  body: (ground: Ground) => Promise<void>,
): Promise<void> {
  const ground = new Ground(size);
  await ground.world.run(createFractions(1), () => body(ground));
}

/** At most this many hosts, each in a partition of its own. */
function spreadHosts(ground: Ground, count: number): HostKey[] {
  const byPartition = new Map(ground.hosts.map((key) => [partitionOf(key, ground.partitions), key]));
  return [...byPartition.values()].slice(0, count);
}

const sentIn = (ground: Ground): string =>
  [subjects.directory, subjects.directoryRefresh, subjects.directoryVersions]
    .map((subject) => `${subject}: ${ground.world.sent(subject).messages} of ${ground.world.sent(subject).bytes} bytes`)
    .join('; ');

/** @returns the whole directories that are published when a third of the processes reconnects */
async function loseServer(t: Test, ground: Ground, processes: number, changed: number): Promise<number> {
  const lost = ground.all.slice(0, Math.floor(processes / 3));
  for (const { leave } of lost) leave();
  const keys = spreadHosts(ground, changed);
  for (const key of keys) ground.cordon(key);
  await ground.pass(100);
  ground.world.forget();
  await ground.reconnect(lost);
  t.ok(
    keys.every((key) => ground.see(key)),
    'all know what changed meanwhile',
  );
  t.comment(`${lost.length} of ${processes} reconnect, ${changed} partitions changed: ${sentIn(ground)}`);
  return ground.world.sent(subjects.directory).messages;
}

t.test('after a lost NATS server, only the directories that changed are sent', async (t) => {
  const size = { hosts: 200, partitions: 16 };
  const processes = 24;
  await onGround(size, async (ground) => {
    await ground.start(processes);
    t.ok(ground.knowAll());
    t.equal(await loseServer(t, ground, processes, 0), 0);
  });
  await onGround(size, async (ground) => {
    await ground.start(processes);
    const changed = 3;
    const sent = await loseServer(t, ground, processes, changed);
    const rests = Math.ceil((2 * second) / (limits.directoryRestMs / 2));
    t.ok(sent >= changed && sent <= changed * (1 + rests), `${sent}: askers share the answers`);
  });
});

t.test('while nothing changes, only versions are sent', async (t) => {
  await onGround({ hosts: 200, partitions: 16 }, async (ground) => {
    await ground.start(24);
    ground.world.forget();
    await ground.pass(limits.syncIntervalMs);
    t.equal(ground.world.sent(subjects.directory).messages, 0);
    t.equal(ground.world.sent(subjects.directoryRefresh).messages, 0);
    t.equal(ground.world.sent(subjects.directoryVersions).messages, 16, 'of each owner');
    t.comment(sentIn(ground));
  });
});

t.test('a change whose message was lost is noticed', async (t) => {
  await onGround({ hosts: 200, partitions: 16 }, async (ground) => {
    await ground.start(24);
    const [lost = hostKey('none'), same = lost] = ground.hostsOf(0);
    ground.isLost = (subject) => subject === subjects.directory;
    ground.cordon(lost);
    await ground.pass(100);
    ground.isLost = () => false;
    t.notOk(ground.see(lost));
    // The next change comes through, and does not hide that one is missing.
    ground.cordon(same);
    await ground.pass(100);
    t.ok(ground.see(same));
    t.notOk(ground.see(lost));
    ground.world.forget();
    await ground.pass(limits.syncIntervalMs + 2 * limits.directoryAskMs);
    t.ok(ground.see(lost));
    t.equal(ground.world.sent(subjects.directory).messages, 1, 'for all that missed it');
    const asks = ground.world.sent(subjects.directoryRefresh).messages;
    t.ok(asks >= 1 && asks <= 3, `${asks}: who hears the answer does not ask`);
  });
});

t.test('changes of one commit have one revision, and the loss of the last is noticed', async (t) => {
  await onGround({ hosts: 20, partitions: 1 }, async (ground) => {
    await ground.start(2);
    const [first = hostKey('none'), last = first] = ground.hosts;
    ground.cordon(first);
    await ground.pass(100);
    const owned = ground.of(0).owned.get(0);
    if (owned !== undefined) owned.committed--;
    ground.isLost = (subject) => subject === subjects.directory;
    ground.cordon(last);
    await ground.pass(100);
    ground.isLost = () => false;
    t.notOk(ground.see(last));
    await ground.pass(limits.syncIntervalMs + 2 * limits.directoryAskMs);
    t.ok(ground.see(last));
  });
});

t.test('a new process has all hosts at once, and knows which are silent', async (t) => {
  await onGround({ hosts: 50, partitions: 4 }, async (ground) => {
    await ground.start(8);
    const [silent = hostKey('none')] = ground.hosts;
    for (const { fleet } of ground.all) for (const key of ground.hosts) fleet.greeted(key);
    await ground.pass(2 * limits.hostUnknownMs);
    for (const { fleet } of ground.all) for (const key of ground.hosts) if (key !== silent) fleet.greeted(key);
    const { fleet } = ground.startOne();
    await ground.pass(10);
    t.ok(ground.knowAll());
    t.equal(fleet.condition(silent), 'silent');
    t.equal(ground.hosts.filter((key) => fleet.condition(key) === 'up').length, ground.hosts.length - 1);
  });
});

t.test('a former owner’s message about its version does not count any more', async (t) => {
  await onGround({ hosts: 50, partitions: 1 }, async (ground) => {
    await ground.start(3);
    const [key = hostKey('none')] = ground.hosts;
    for (let change = 0; change < 5; change++) ground.cordon(key, change % 2 === 0);
    await ground.pass(100);
    // The former owner was paused, and does not know yet.
    ground.own(ground.of(1), 0, 2);
    await ground.pass(100);
    ground.world.forget();
    ground.world.as(ground.of(0).process, () => ground.of(0).exchange.tell());
    await ground.pass(2 * limits.directoryAskMs);
    t.equal(ground.world.sent(subjects.directoryRefresh).messages, 0);
    t.ok(ground.see(key, false), 'as the new owner loaded it');
  });
});

t.test('a process that stops asks and sends nothing more', async (t) => {
  await onGround({ hosts: 20, partitions: 1 }, async (ground) => {
    await ground.start(3);
    const [key = hostKey('none')] = ground.hosts;
    ground.isLost = (subject) => subject === subjects.directory;
    ground.cordon(key);
    await ground.pass(100);
    ground.isLost = () => false;
    const [owner, ...others] = ground.all;
    ground.world.as(ground.of(0).process, () => owner?.exchange.tell());
    await ground.pass(100);
    for (const { exchange } of others) exchange.stop();
    ground.world.forget();
    await ground.pass(2 * limits.directoryAskMs);
    t.equal(ground.world.sent(subjects.directoryRefresh).messages, 0);
  });
});
