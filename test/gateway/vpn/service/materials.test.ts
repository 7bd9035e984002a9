import t from 'tap';
import { Materials } from '../../../../gateway/vpn/service/materials.ts';
import type { Outcome } from '../../../../lib/rpc/partition-client.ts';
import type { NetworkName, TenantId } from '../../../../schemas/ids.ts';
import type { NetworkRecord } from '../../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../../schemas/api/peer.ts';
import { refusal } from '../../support.ts';
import { forageWith, networkNow, peerNow } from '../forage.ts';
import { peerId } from '../support.ts';

const demo = 'demo' as TenantId;
const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };
const access = { tenant: demo, peer: peerId };

const material = (data: unknown, version: string): Outcome => ({
  code: 'ok',
  body: JSON.stringify({ data, version }),
});

/** Owners of a peer and of a network, each of which can be replaced. */
function owners() {
  const records: { peer: PeerRecord; network: NetworkRecord } = { peer: peerNow(), network: networkNow() };
  const versionOf = (record: PeerRecord | NetworkRecord): string => `v${record.updatedAtMs}`;
  const answer = (record: PeerRecord | NetworkRecord, known: string | undefined): Outcome => {
    const version = versionOf(record);
    return material(known === version ? null : record, version);
  };
  const { forage, asked } = forageWith({
    'peer.material': (question) =>
      question.type !== 'peer.material'
        ? refusal('internal')
        : question.tokenHash === 'revoked'
          ? refusal('unauthenticated')
          : answer(records.peer, question.known),
    'network.material': (question) =>
      question.type === 'network.material' && question.network === records.network.name
        ? answer(records.network, question.known)
        : refusal('not_found'),
  });
  const questions = () => asked.splice(0).map(({ question }) => question);
  return { records, materials: new Materials(forage.actors), questions };
}

t.test('a record is sent once, and again when it has changed', async (t) => {
  const { records, materials, questions } = owners();
  t.same(await materials.load(asker, access), records);
  t.same(
    questions().map((question) => 'known' in question),
    [false, false],
  );
  const [first, second] = [await materials.load(asker, access), await materials.load(asker, access)];
  t.same([first, second], [records, records]);
  t.match(questions(), [
    { type: 'network.material', known: /^v/ },
    { type: 'peer.material', known: /^v/ },
    { type: 'network.material' },
    { type: 'peer.material' },
  ]);
  records.peer = peerNow({ name: 'renamed', updatedAtMs: 99 });
  records.network = { ...networkNow({ endpoint: 'vpn2.example.com' }), updatedAtMs: 98 };
  const changed = await materials.load(asker, access);
  t.same(changed, records);
  t.match(changed, { peer: { name: 'renamed' }, network: { settings: { endpoint: 'vpn2.example.com' } } });
  questions();
  t.same(await materials.network(asker, records.network.name), records.network);
  t.match(questions(), [{ type: 'network.material', known: 'v98' }]);
});

t.test('a copy does not open for a revoked token, nor for another tenant', async (t) => {
  const { materials, questions } = owners();
  await materials.load(asker, access);
  const refused = { name: 'Refusal', result: { code: 'unauthenticated' } };
  await t.rejects(materials.load(asker, { ...access, tokenHash: 'revoked' }), refused);
  questions();
  await materials.load(asker, { ...access, tenant: 'other' as TenantId });
  t.notOk('known' in (questions()[0] ?? {}), 'another tenant begins without a copy');
});

t.test('a peer of another network than the copy says is read with its own network', async (t) => {
  const { records, materials } = owners();
  await materials.load(asker, access);
  const moved = 'moved' as NetworkName;
  records.network = { ...networkNow(), name: moved, updatedAtMs: 5 };
  records.peer = peerNow({ network: moved, updatedAtMs: 6 });
  t.match(await materials.load(asker, access), { peer: { network: moved }, network: { name: moved } });
});

t.test('an answer without a record is refused where no copy of that version was named', async (t) => {
  const { forage } = forageWith({ 'network.material': () => material(null, 'v1') });
  await t.rejects(forage.networks.load(asker, 'demo' as NetworkName), /no record, and no copy of it/);
});
