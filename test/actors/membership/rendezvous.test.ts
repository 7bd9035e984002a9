import t from 'tap';
import { memberFor } from '../../../actors/membership/rendezvous.ts';
import type { MemberId } from '../../../schemas/ids.ts';

t.test('every member computes the same owner, and a member that leaves moves its own partitions alone', (t) => {
  const members = Array.from({ length: 5 }, (_, index) => `m${index}` as MemberId);
  const all = Array.from({ length: 256 }, (_, partition) => partition);
  const before = all.map((partition) => memberFor(partition, members));
  t.same(
    all.map((partition) => memberFor(partition, members.toReversed())),
    before,
  );
  for (const member of members) {
    const share = before.filter((owner) => owner === member).length;
    t.ok(share > 25 && share < 80, `${member} has ${share} of 256`);
  }
  const without = members.slice(1);
  for (const [partition, owner] of before.entries()) {
    if (owner !== members[0]) t.equal(memberFor(partition, without), owner);
  }
  t.equal(memberFor(0, []), undefined);
  t.end();
});
