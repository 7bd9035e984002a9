/** The host directory: which messages count, and what is made of silence. */
import t from 'tap';
import { HostDirectory } from '../../../actors/endpoints/directory.ts';
import { Fleet } from '../../../actors/endpoints/fleet.ts';
import { directoryEntry, hostView } from '../../../actors/domain/host/decide.ts';
import { sweep } from '../../../actors/domain/sweep.ts';
import { noChanges } from '../../../actors/domain/turn.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { DirectoryMessage } from '../../../schemas/wire/directory.ts';
import type { HostRoom } from '../../../schemas/wire/host.ts';
import { h1, h2, h3, hostRecord, none, region, roomy, stateOf } from '../support/records.ts';

/** The rest of a heartbeat that has nothing to say. */
const quiet = { orphans_held: 0, volumes_left: 0, faults: [], room: {} };

function fleetAt(startMs = 0, hostUnknownMs = 100) {
  let nowMs = startMs;
  const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };
  const fleet = new Fleet({ clock, partitions: 1, hostUnknownMs });
  const beat = (key: HostKey, session = 1): boolean =>
    fleet.takeHeartbeat(key, { v: 1, session, used: none, engine: 'test', ...quiet });
  return { fleet, beat, pass: (ms: number) => void (nowMs += ms) };
}

const message = (more: Partial<DirectoryMessage>): DirectoryMessage => ({
  partition: 0,
  epoch: 1,
  revision: 1,
  changes: 1,
  full: true,
  entries: [],
  removed: [],
  unreadable: [],
  ...more,
});
const entries = (...keys: HostKey[]) => keys.map((key) => directoryEntry(hostRecord(key)));

t.test('another end of the mesh is news, and the first one is not', (t) => {
  const said: HostKey[] = [];
  const clock: Clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const fleet = new Fleet({ clock, partitions: 1, hostUnknownMs: 100, onMeshEnd: (host) => void said.push(host) });
  fleet.learn(message({ entries: entries(h1) }));
  const end = { key: `${'A'.repeat(43)}=`, address: '192.0.2.7', port: 51_820 };
  const beat = (more: { readonly mesh?: typeof end }): boolean =>
    fleet.takeHeartbeat(h1, { v: 1, session: 1, used: none, engine: 'test', ...quiet, ...more });
  beat({ mesh: end });
  beat({ mesh: { ...end } });
  t.same(said, [], 'after a start of this process all of them are first ones');
  beat({ mesh: { ...end, port: 51_821 } });
  t.match(fleet.meshEnd(h1), { port: 51_821 });
  beat({});
  t.equal(fleet.meshEnd(h1), null);
  t.same(said, [h1, h1]);
  t.end();
});

t.test('the faults that an agent names stand until its next beat', (t) => {
  const { fleet, beat } = fleetAt();
  fleet.learn(message({ entries: entries(h1) }));
  const faults = [{ kind: 'state_unwritable', message: 'no space left on device' }];
  fleet.takeHeartbeat(h1, { v: 1, session: 1, used: none, engine: 'test', ...quiet, faults });
  t.same(hostView(hostRecord(h1), fleet).faults, faults);
  beat(h1);
  t.same(hostView(hostRecord(h1), fleet).faults, []);
  t.end();
});

t.test('two agents of one identity: the one that started later is believed, and the fault is shown', (t) => {
  const { fleet, beat, pass } = fleetAt();
  fleet.learn(message({ entries: entries(h1) }));
  const faults = () => hostView(hostRecord(h1), fleet).faults.map(({ kind }) => kind);
  beat(h1, 5);
  t.notOk(fleet.isSuperseded(h1, 5, 5), 'its own session');
  t.notOk(fleet.isSuperseded(h1, 5, 6), 'an answer that was lost: nobody is heard in the newer session');
  beat(h1, 6);
  beat(h1, 5);
  t.same(faults(), [], 'the last heartbeat of an agent that was restarted');
  t.ok(fleet.isSuperseded(h1, 5, 6), 'another is heard in the newer session');
  t.notOk(fleet.isSuperseded(h1, 7, 6), 'after a restore the control plane is behind');
  for (let each = 0; each < 3; each++) {
    pass(50);
    beat(h1, 6);
    beat(h1, 5);
  }
  t.same(faults(), ['cloned_state'], 'both go on');
  pass(100);
  t.notOk(fleet.isSuperseded(h1, 5, 6), 'the other is silent');
  beat(h1, 6);
  t.same(faults(), [], 'or this one is');
  t.end();
});

t.test('an older message never replaces a newer one', (t) => {
  const { fleet, beat } = fleetAt();
  t.equal(fleet.condition(h1), 'unheard', 'nothing was told');
  t.ok(fleet.learn(message({ epoch: 2, revision: 5, entries: entries(h1) })));
  beat(h1);
  const rows: [string, Partial<DirectoryMessage>, boolean, string][] = [
    ['older epoch', { epoch: 1, revision: 9 }, false, 'up'],
    ['older revision', { epoch: 2, revision: 4 }, false, 'up'],
    ['the same revision, another host', { epoch: 2, revision: 5, full: false, entries: entries(h2) }, true, 'up'],
    ['newer, removed', { epoch: 2, revision: 6, full: false, removed: [h1] }, true, 'removed'],
    ['newer, full, back', { epoch: 2, revision: 7, entries: entries(h1) }, true, 'unheard'],
    ['newer epoch, full, without it', { epoch: 3, revision: 1 }, true, 'removed'],
  ];
  for (const [name, more, isTaken, condition] of rows) {
    t.equal(fleet.learn(message(more)), isTaken, name);
    t.equal(fleet.condition(h1), condition, name);
  }
  t.same(fleet.hostsIn(region('default')), []);
  t.end();
});

t.test('changes of one commit have one revision, and an older one never replaces a newer one', (t) => {
  const { fleet } = fleetAt();
  t.same(fleet.held(), {}, 'nothing was told');
  t.ok(fleet.learn(message({ changes: 7, entries: entries(h1) })));
  t.notOk(fleet.learn(message({ changes: 6 })));
  t.equal(fleet.condition(h1), 'unheard');
  t.same(fleet.held(), { 0: [1, 7] });
  t.ok(fleet.learn(message({ changes: 8, full: false, removed: [h1] })));
  t.equal(fleet.condition(h1), 'removed');
  t.same(fleet.held(), { 0: [1, 8] });
  t.end();
});

t.test('a directory of which a change was missed is not held', (t) => {
  const rows: [string, Partial<DirectoryMessage>, boolean][] = [
    ['the same change again', { changes: 5, full: false }, true],
    ['the next change', { changes: 6, full: false }, true],
    ['the change after that', { changes: 7, full: false }, false],
    ['a change of another epoch', { epoch: 2, changes: 6, full: false }, false],
    ['all hosts', { epoch: 2, changes: 9 }, true],
  ];
  for (const [name, more, isHeld] of rows) {
    const { fleet } = fleetAt();
    fleet.learn(message({ changes: 5 }));
    t.ok(fleet.learn(message(more)), name);
    const { epoch = 1, changes = 0 } = more;
    t.same(fleet.held(), isHeld ? { 0: [epoch, changes] } : {}, name);
    t.equal(fleet.isUpTo(0, [epoch, changes]), isHeld, name);
    t.notOk(fleet.isUpTo(0, [epoch, changes + 1]), name);
    t.notOk(fleet.isUpTo(0, [epoch + 1, 0]), name);
    t.ok(fleet.isUpTo(0, [epoch - 1, 99]), `${name}: a former owner`);
    t.notOk(fleet.isUpTo(1, [epoch, changes]), 'another partition');
  }
  t.end();
});

t.test('a message about one host does not say that the others are gone', (t) => {
  const { fleet } = fleetAt();
  t.notOk(fleet.learn(message({ full: false, entries: entries(h1) })));
  t.equal(fleet.condition(h2), 'unheard');
  t.end();
});

t.test('a host whose record is damaged is unheard of, and not removed, until it is made again', (t) => {
  const { fleet, beat } = fleetAt();
  const state = stateOf(hostRecord(h1));
  state.quarantine(`host.${h2}`);
  const directory = new HostDirectory();
  directory.load(state);
  const version = { partition: 0, epoch: 1, revision: 1 };
  fleet.learn(directory.whole(version));
  beat(h1);
  beat(h2);
  t.equal(fleet.condition(h1), 'up');
  t.equal(fleet.condition(h2), 'unheard');
  t.equal(fleet.condition(h3), 'removed');
  fleet.learn(directory.change({ ...version, revision: 2 }, h2, directoryEntry(hostRecord(h2))));
  beat(h2);
  t.equal(fleet.condition(h2), 'up');
  fleet.learn(directory.change({ ...version, revision: 3 }, h2, null));
  t.equal(fleet.condition(h2), 'removed');
  fleet.learn(directory.whole({ ...version, revision: 3 }));
  t.same([fleet.condition(h1), fleet.condition(h2)], ['up', 'removed']);
  t.end();
});

t.test('a directory says of a host what was committed last, not what memory says', (t) => {
  const state = stateOf(hostRecord(h1));
  const directory = new HostDirectory();
  directory.load(state);
  state.delete(`host.${h1}`);
  t.same(
    directory.whole({ partition: 0, epoch: 1, revision: 1 }).entries.map(({ key }) => key),
    [h1],
  );
  t.end();
});

t.test('silence', (t) => {
  const { fleet, beat, pass } = fleetAt();
  fleet.learn(message({ entries: entries(h1, h2) }));
  pass(99);
  t.equal(fleet.condition(h1), 'unheard', 'it has not had the time to be heard, and no other process has reported it');
  pass(1);
  t.equal(fleet.condition(h1), 'silent');
  beat(h1);
  t.equal(fleet.condition(h1), 'up');
  beat(h1, 0);
  pass(60);
  beat(h1, 0);
  pass(60);
  t.equal(fleet.condition(h1), 'silent', 'a heartbeat of a session that is over says nothing');
  beat(h3);
  t.equal(fleet.beat(h3), null, 'a stranger’s heartbeat is not kept');
  t.equal(fleet.lastHeardMs(h2), null);
  fleet.greeted(h2);
  t.equal(fleet.condition(h2), 'up', 'a hello is a sign of life');
  t.end();
});

t.test('silence is counted while this process can hear, and goes on over lost connections', (t) => {
  const unknownMs = 10 * limits.deafUnnoticedMs;
  const { fleet, beat, pass } = fleetAt(0, unknownMs);
  fleet.learn(message({ entries: entries(h1) }));
  beat(h1);
  pass(1000 * unknownMs);
  fleet.listening.listen();
  fleet.listening.stood(1000 * unknownMs - limits.deafUnnoticedMs);
  t.equal(fleet.silentMs(h1), 0, 'neither a process that stood nor a connection that was lost makes a host silent');

  for (let flaps = 1; flaps <= 12; flaps++) {
    pass(2 * limits.deafUnnoticedMs);
    fleet.listening.deafen();
    pass(100 * unknownMs);
    t.ok(fleet.silentMs(h1) <= flaps * limits.deafUnnoticedMs, 'deaf, nothing is counted');
    fleet.listening.listen();
    t.equal(fleet.silentMs(h1), flaps * limits.deafUnnoticedMs, 'what was heard before counts on');
  }
  t.equal(fleet.condition(h1), 'silent', 'a link that flaps hides no host');
  fleet.listening.deafen();
  pass(unknownMs);
  fleet.listening.listen();
  t.equal(fleet.condition(h1), 'silent', 'and forgets none');
  beat(h1);
  t.equal(fleet.condition(h1), 'up');
  fleet.listening.deafen();
  t.equal(fleet.silentMs(h1), 0, 'never below nothing');
  t.end();
});

t.test('a process that has just started knows from the others who is silent', (t) => {
  const old = fleetAt();
  old.fleet.learn(message({ entries: entries(h1, h2, h3) }));
  old.beat(h1);
  old.beat(h2);
  old.pass(150);
  old.beat(h2);
  const fresh = fleetAt(5_000_000);
  fresh.fleet.learn(old.fleet.dated(message({ entries: entries(h1, h2, h3) })));
  t.same(
    [h1, h2, h3].map((key) => fresh.fleet.condition(key)),
    ['silent', 'up', 'unheard'],
  );
  fresh.beat(h3);
  fresh.pass(50);
  fresh.fleet.learn(old.fleet.dated(message({ entries: entries(h1, h2, h3) })));
  t.equal(fresh.fleet.silentMs(h3), 50, 'what it hears itself, nobody tells it');
  t.end();
});

t.test('a third of a region silent', (t) => {
  const { fleet, beat, pass } = fleetAt();
  const joining = directoryEntry(hostRecord('h9' as HostKey, { capacity: null }));
  const many = Array.from({ length: 6 }, (_, index) => `n${index}` as HostKey);
  fleet.learn(message({ entries: [...entries(...many), joining] }));
  pass(200);
  const [n0, n1, n2, ...others] = many as [HostKey, HostKey, HostKey, ...HostKey[]];
  t.ok(fleet.regionSilence()(n0), 'a new owner that hears nobody blames no host');
  for (const key of others) beat(key);
  t.ok(fleet.regionSilence()(n0), 'two of the five others');
  t.notOk(fleet.regionSilence()(h1), 'a stranger');
  beat(n2);
  t.notOk(fleet.regionSilence()(n0), 'one of them; who never said hello does not count');
  t.ok(fleet.condition(n1) === 'silent');
  t.end();
});

t.test('a sweep over many silent hosts looks at each a few times', (t) => {
  let reads = 0;
  let nowMs = 0;
  const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => (reads++, nowMs) };
  const fleet = new Fleet({ clock, partitions: 1, hostUnknownMs: 100 });
  const many = Array.from({ length: 3000 }, (_, index) => `n${index}` as HostKey);
  fleet.learn(message({ entries: entries(...many) }));
  nowMs = 10_000;
  const heard = many.filter((_, index) => index % 5 > 1);
  for (const key of heard) fleet.takeHeartbeat(key, { v: 1, session: 1, used: none, engine: 'test', ...quiet });
  const state = stateOf(...many.map((key) => hostRecord(key)));
  reads = 0;
  const regionIsSilent = fleet.regionSilence();
  const context = {
    nowMs,
    expiryMs: nowMs,
    cluster: 'c',
    servedMs: nowMs,
    fleet,
    requestId: null,
    hostLostMs: 1000,
    regionIsSilent,
    onFault: () => {},
  };
  const changes = [...sweep(state, { ...context, silentMs: (host) => fleet.silentMs(host) })];
  t.same(
    changes.filter((change) => change !== noChanges),
    [],
    'two fifths of the region are silent: nobody is lost',
  );
  t.ok(reads <= 4 * many.length, `${reads} looks at the clock`);
  t.end();
});

const placed = { cpuMillis: 100, memBytes: 10, ports: 2 };

t.test('use is what we placed or what the host says, whichever is more', (t) => {
  const { fleet } = fleetAt();
  fleet.learn(message({ entries: entries(h1) }));
  fleet.placements.add(h1, placed);
  fleet.placements.add(h1, placed);
  fleet.takeHeartbeat(h1, {
    v: 1,
    session: 1,
    used: { ...none, cpu_millis: 150, mem_bytes: 50 },
    engine: '',
    ...quiet,
  });
  t.match(fleet.host(h1), { capacity: roomy, used: { cpu_millis: 200, mem_bytes: 50, containers: 2 } });
  fleet.placements.subtract(h1, placed);
  fleet.placements.subtract(h1, placed);
  t.match(fleet.host(h1), { used: { cpu_millis: 150, mem_bytes: 50, containers: 0 } });
  t.end();
});

t.test('free ports are what the host said last, less what was placed there since', (t) => {
  const { fleet } = fleetAt();
  fleet.learn(message({ entries: entries(h1) }));
  const says = (room: HostRoom) =>
    fleet.takeHeartbeat(h1, { v: 1, session: 1, used: none, engine: '', ...quiet, room });
  const free = () => fleet.host(h1)?.freePorts;
  fleet.placements.add(h1, placed);
  says({ ports: 5, disk_bytes: 7 });
  t.match(fleet.host(h1), { freePorts: 5, freeDiskBytes: 7 }, 'what was placed before is counted by the host');
  t.match(hostView(hostRecord(h1), fleet), { free_ports: 5, free_disk_bytes: 7 });
  fleet.placements.add(h1, placed);
  t.equal(free(), 3);
  t.equal(hostView(hostRecord(h1), fleet).free_ports, 5, 'an operator sees what the host says');
  for (let count = 0; count < 3; count++) fleet.placements.add(h1, placed);
  t.equal(free(), 0, 'never below nothing');
  for (let count = 0; count < 5; count++) fleet.placements.subtract(h1, placed);
  t.equal(free(), 5, 'nor above what it said');
  fleet.placements.add(h1, placed);
  fleet.placements.add(h1, placed);
  fleet.heardAgain(h1);
  t.equal(free(), 5, 'it says so again');
  says({});
  t.match(fleet.host(h1), { freePorts: null, freeDiskBytes: null });
  t.match(hostView(hostRecord(h1), fleet), { free_ports: null, free_disk_bytes: null });
  t.end();
});
