/** Members of tenants, as an agent takes them in and keeps them. */
import t, { type Test } from 'tap';
import { TenantMembers } from '../../../host-agent/desired/members.ts';
import type { MembersAnswer } from '../../../host-agent/desired/desired-set.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { type ContainerMember, digestOfMembers, isPeer, type Member } from '../../../schemas/wire/members.ts';
import { digestOfEnds, type EndSaid, type MeshEnd } from '../../../schemas/wire/mesh.ts';
import { basisOf } from '../../../schemas/wire/set-digest.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { createStateDisk } from '../../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../../host-agent/faults.ts';

const acme = 'acme' as TenantId;
const globex = 'globex' as TenantId;
const member = (at: number, name: string, tenant = acme): ContainerMember => ({
  tenant,
  id: `00000000-0000-7000-8000-${String(at).padStart(12, '0')}` as ContainerId,
  name,
  host: 'h1' as HostKey,
});
const digest = (...members: readonly Member[]): string => digestOfMembers(basisOf(0), members);

const load = (folder: string, cluster = 'c1'): Promise<TenantMembers> =>
  TenantMembers.load(
    folder,
    cluster,
    createStateDisk(createFaults(quietLog), { minMs: 1, maxMs: 10 }, quietLog),
    quietLog,
  );

async function start(t: Test) {
  const folder = temporaryFolder(t);
  const members = await load(folder);
  let changes = 0;
  members.events.on('changed', () => void changes++);
  const apply = (
    revision: number,
    more: Partial<MembersAnswer> & { readonly since?: number; readonly digest: string },
  ) => {
    const { since, digest: given, epoch = 1, ...lists } = more;
    const mesh = digestOfEnds(lists.mesh ?? []);
    const tenants = [{ tenant: acme, revision, digest: given, mesh, ...(since === undefined ? {} : { since }) }];
    members.apply({ epoch, tenants, members: [], gone: [], mesh: [], servers: [], tenantsGone: [], ...lists });
  };
  const names = (): string[] => Array.from(members.all(), (each) => (isPeer(each) ? each.id : each.name)).sort();
  return { folder, members, apply, names, changes: () => changes };
}

const [web, store, late] = [member(1, 'web'), member(2, 'store'), member(3, 'late')];

t.test('a whole list, and changes to it', async (t) => {
  const { members, apply, names, changes } = await start(t);
  apply(5, { members: [web, store], digest: digest(web, store) });
  t.same(names(), ['store', 'web']);
  apply(7, { since: 5, members: [late], gone: [{ tenant: acme, id: web.id }], digest: digest(store, late) });
  t.same(names(), ['late', 'store']);
  t.same(members.asked(undefined, 4), { acme: [1, 7, digest(store, late), digestOfEnds([])] });
  t.equal(changes(), 2);
});

t.test('an answer that is older, or to another version, changes nothing', async (t) => {
  const { apply, names, changes } = await start(t);
  apply(5, { epoch: 2, members: [web], digest: digest(web) });
  apply(9, { epoch: 1, members: [store], digest: digest(store) });
  apply(4, { epoch: 2, members: [store], digest: digest(store) });
  apply(8, { epoch: 2, since: 6, members: [store], digest: digest(web, store) });
  apply(8, { epoch: 3, since: 5, members: [store], digest: digest(web, store) });
  t.same(names(), ['web']);
  t.equal(changes(), 1);
});

t.test('changes that do not lead to the list of the owner are kept, and the whole list is asked for', async (t) => {
  const { members, apply, names } = await start(t);
  apply(5, { members: [web], digest: digest(web) });
  apply(6, { since: 5, members: [late], digest: digest(web, store, late) });
  t.same(names(), ['late', 'web']);
  t.same(members.asked(undefined, 4), { acme: [1, 6, '', digestOfEnds([])] });
});

t.test('an ask for some partitions names their tenants', async (t) => {
  const { members, apply } = await start(t);
  apply(5, { members: [web], digest: digest(web) });
  const own = partitionOf(acme, 4);
  t.same(Object.keys(members.asked([own], 4)), [acme]);
  t.same(members.asked([(own + 1) % 4], 4), {});
});

t.test('they are there after a restart, and those of another cluster are not', async (t) => {
  const { folder, members, apply } = await start(t);
  apply(5, { members: [web, store], digest: digest(web, store) });
  await members.flush();
  const again = await load(folder);
  t.same([...again.all()], [web, store]);
  t.same(again.asked(undefined, 4), members.asked(undefined, 4));
  t.same([...(await load(folder, 'c2')).all()], []);
});

t.test('ends of hosts are kept while a member is there, also over a restart', async (t) => {
  const { folder, members, apply } = await start(t);
  const at = (port: number): MeshEnd => ({ key: `${'A'.repeat(43)}=`, address: '192.0.2.7', port });
  const said = (host: string, port: number): EndSaid => ({ host: host as HostKey, end: at(port) });
  const ends = () => Array.from(members.ends(), ({ host, port }) => `${host} ${port}`);
  const far = { ...store, host: 'h2' as HostKey };
  const both = { since: 5, digest: digest(web, far) };
  apply(5, { members: [web, far], digest: digest(web, far), mesh: [said('h2', 1), said('h1', 1)] });
  t.same(
    [...members.ends()],
    [
      { host: 'h2', ...at(1) },
      { host: 'h1', ...at(1) },
    ],
  );
  t.same(members.asked(undefined, 4)[acme]?.[3], digestOfEnds([said('h1', 1), said('h2', 1)]));
  apply(5, { ...both, mesh: [said('h1', 2), said('h2', 2)] });
  t.same(ends(), ['h2 2', 'h1 2'], 'in the order in which they were known first');
  apply(5, { ...both, mesh: [] });
  t.same(ends(), ['h2 2', 'h1 2'], 'an owner that has not heard the hosts yet takes none away');
  await members.flush();
  t.same([...(await load(folder)).ends()], [...members.ends()]);
  apply(5, { ...both, mesh: [{ host: 'h2' as HostKey, end: null }, said('h1', 2)] });
  t.same(ends(), ['h1 2'], 'a host that says that it has none has none');
  apply(5, { ...both, mesh: [said('h2', 3)] });
  apply(6, { since: 5, gone: [{ tenant: acme, id: far.id }], digest: digest(web), mesh: [] });
  t.same(ends(), ['h1 2'], 'a host without members is forgotten');
});

t.test('tenants that have left the host are forgotten', async (t) => {
  const { members, apply, names } = await start(t);
  apply(5, { members: [web], digest: digest(web) });
  const foreign = member(9, 'theirs', globex);
  members.apply({
    epoch: 1,
    tenants: [{ tenant: globex, revision: 1, digest: digest(foreign), mesh: '' }],
    members: [foreign],
    gone: [],
    mesh: [],
    servers: [],
    tenantsGone: [],
  });
  apply(6, { digest: digest(), tenants: [], tenantsGone: [acme], epoch: 0 });
  t.same(names(), ['theirs', 'web'], 'an earlier owner does not know');
  apply(6, { digest: digest(), tenants: [], tenantsGone: [acme] });
  t.same(names(), ['theirs']);
});
