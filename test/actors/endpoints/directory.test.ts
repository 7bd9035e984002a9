/**
 * Ten thousand hosts: lists in pages, and a directory in parts, none of which makes the hosts of
 * another look removed.
 */
import t from 'tap';
import { directoryEntry } from '../../../actors/domain/host/decide.ts';
import { DirectoryParts, HostDirectory, messagesOf } from '../../../actors/endpoints/directory.ts';
import { Fleet } from '../../../actors/endpoints/fleet.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { runAtOnce } from '../../../lib/time/slices.ts';
import type { HostView } from '../../../schemas/api/host.ts';
import { limits } from '../../../schemas/limits.ts';
import type { KeyPage } from '../../../schemas/wire/answers.ts';
import type { DirectoryMessage } from '../../../schemas/wire/directory.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { hostKey } from '../support.ts';
import { hostRecord, stateOf } from '../support/records.ts';
import { read } from '../support/vpn.ts';

const count = 10_000;
const names = Array.from({ length: count }, (_, n) => hostKey(`h${String(n).padStart(50, '0')}`));
const state = stateOf(...names.map((key) => hostRecord(key)));
const damaged = hostKey('damaged');
state.quarantine(`host.${damaged}`);
const directory = new HostDirectory();
directory.load(state);
const fleetOf = (): Fleet => new Fleet({ clock: systemClock, partitions: 1, hostUnknownMs: 60_000 });
const tellingOf = (message: DirectoryMessage): DirectoryMessage[] =>
  runAtOnce(messagesOf(message)).map((text) => JSON.parse(text) as DirectoryMessage);
const version = { partition: 0, epoch: 1, revision: 1 };

t.test('a directory that fits no message is told in parts that do', (t) => {
  const messages = tellingOf(directory.whole(version));
  t.ok(messages.length > 1);
  for (const message of messages) t.ok(JSON.stringify(message).length <= limits.answerPartBytes + 1024);

  const fleet = fleetOf();
  const parts = new DirectoryParts();
  const learn = (list: typeof messages): void => {
    for (const message of list) {
      const whole = parts.take(message);
      if (whole !== undefined) fleet.learn(whole);
    }
  };
  learn(messages.slice(0, -1));
  t.equal(fleet.condition(names[0] as (typeof names)[0]), 'unheard', 'until all are there nothing is known');
  learn(messages.slice(-1));
  t.equal([...fleet.hosts()].length, count);
  t.equal(fleet.condition(damaged), 'unheard');

  // The next telling: a part is lost, and comes with the one after.
  const later = tellingOf(directory.whole({ ...version, revision: 2 }));
  learn(later.slice(1));
  t.equal([...fleet.hosts()].length, count, 'hosts of a part that is not there are not removed');
  learn(later);
  t.equal([...fleet.hosts()].length, count);

  // Another host of the same commit has changed between two tellings of the same length.
  const [changed = damaged] = names;
  const before = tellingOf(directory.whole({ ...version, revision: 3 }));
  directory.change({ ...version, revision: 3 }, changed, null);
  directory.change({ ...version, revision: 3 }, changed, directoryEntry(hostRecord(changed)));
  const after = tellingOf(directory.whole({ ...version, revision: 3 }));
  t.equal(after.length, before.length);
  learn(before.slice(1));
  learn(after.slice(0, 1));
  t.notSame(fleet.held(), { 0: [1, directory.changes] }, 'parts of two tellings are not one directory');
  t.end();
});

t.test('a small directory is one message, as ever', (t) => {
  const small = new HostDirectory();
  small.load(stateOf(hostRecord(hostKey('one'))));
  const whole = small.whole(version);
  t.same(tellingOf(whole), [{ ...protocolFields, ...whole }]);
  t.equal(new DirectoryParts().take(whole), whole);
  t.end();
});

t.test('the list of hosts comes in pages', (t) => {
  const seen: string[] = [];
  for (let after: string | undefined = ''; after !== undefined;) {
    const page = read(state, { type: 'host.list', partition: 0, limit: 100, after }).body as KeyPage<HostView>;
    t.ok(page.data.length <= 100);
    seen.push(...page.data.map(({ key }) => key));
    after = page.more ? seen.at(-1) : undefined;
  }
  t.same(seen, [...names].sort());
  t.end();
});
