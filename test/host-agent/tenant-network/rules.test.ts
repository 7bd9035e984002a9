import t from 'tap';
import { linkOf } from '../../../host-agent/tenant-network/link-names.ts';
import { macOf } from '../../../host-agent/tenant-network/links.ts';
import { elementsOf, marksOf, tableChange, wholeTable, type Placed } from '../../../host-agent/tenant-network/rules.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';

const id = '00000000-0000-7000-8000-000000000001' as ContainerId;
const container = (at: number, tenant: string, ipv4: string | null = `10.200.0.${at}`): Placed => ({
  tenant: tenant as TenantId,
  link: `lsc${at}`,
  ipv4,
  ipv6: `fd00::${at}`,
  isPeer: false,
});

t.test('names of links fit the kernel, and another run has another one', async (t) => {
  const first = linkOf({ id, run: 'first' });
  t.match(first, /^lsc[0-9a-f]{12}$/);
  t.not(first, linkOf({ id, run: 'second' }));
  t.match(macOf(id), /^02(?::[0-9a-f]{2}){5}$/);
});

t.test('a tenant keeps its mark, and no two have the same', async (t) => {
  const first = marksOf(['a', 'b', 'c'], new Map());
  t.same([...first.values()], [1, 2, 3]);
  const second = marksOf(['c', 'd', 'e'], first);
  t.equal(second.get('c'), 3);
  t.same([...second.values()].toSorted(), [1, 2, 3]);
});

t.test('a change takes away first, then adds; nothing changes for the same', async (t) => {
  const marks = marksOf(['a', 'b'], new Map());
  const before = elementsOf([container(1, 'a'), container(2, 'a')], [], marks);
  t.equal(tableChange(before, before), '');
  const after = elementsOf([container(1, 'a'), { ...container(2, 'a'), tenant: 'b' as TenantId }], [], marks);
  const lines = tableChange(before, after).trim().split('\n');
  t.match(lines[0], /^delete element inet longshore tenant4 \{ 10\.200\.0\.2 : 1 \}$/);
  t.ok(lines.findLastIndex((line) => line.startsWith('delete')) < lines.findIndex((line) => line.startsWith('add')));
  t.notMatch(lines.join('\n'), /10\.200\.0\.1\b/);
});

t.test('a container without IPv4 is in no set of it', async (t) => {
  const elements = elementsOf([container(1, 'a', null)], ['fd5e::53'], marksOf(['a'], new Map()));
  t.same(
    [...elements.values()].flat().map((element) => element.split(' ', 1)[0]),
    ['resolver6', 'own6', 'tenant6', 'peer6'],
  );
  t.match(wholeTable(elements, 'lsm0'), /set resolver6 \{\n {4}type ipv6_addr\n {4}elements = \{ fd5e::53 \}\n {2}\}/);
  t.match(wholeTable(elements, 'lsm0'), /set peer4 \{\n {4}type ipv4_addr \. mark\n {2}\}/);
});

t.test(
  'an address that two tenants claim is the first one’s; one that two members have stays for the other',
  async (t) => {
    const marks = marksOf(['a', 'b'], new Map());
    const [first, other] = [container(1, 'a'), { ...container(1, 'b'), ipv6: 'fd00::2' }];
    const both = elementsOf([first, other], [], marks);
    t.match(wholeTable(both, 'lsm0'), /map tenant4 \{\n.+\n {4}elements = \{ 10\.200\.0\.1 : 1 \}\n/);
    t.match(wholeTable(both, 'lsm0'), /elements = \{ fd00::1 : 1, fd00::2 : 2 \}/);
    const change = tableChange(both, elementsOf([other], [], marks));
    t.match(change, /^delete element inet longshore tenant4 \{ 10\.200\.0\.1 : 1 \}$/m);
    t.match(change, /^add element inet longshore tenant4 \{ 10\.200\.0\.1 : 2 \}$/m);

    const twins = [container(1, 'a'), { ...container(1, 'a'), ipv6: 'fd00::2' }];
    const left = tableChange(elementsOf(twins, [], marks), elementsOf(twins.slice(1), [], marks));
    t.notMatch(left, /10\.200\.0\.1/, 'the other has it still');
    t.match(left, /^delete element inet longshore peer6 \{ fd00::1 \. 1 \}$/m);
  },
);
