/**
 * A tenant stays within its caps, but creates and deletes containers, VPN peers and their keys
 * without end. The records that remain of them must be bounded in memory and in the bucket, also
 * after a change of owner; and the tenant can delete at any time.
 */
import t from 'tap';
import type { Partition } from '../../../actors/partition.ts';
import { gonePeers } from '../../../actors/domain/tenant/remembered.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { PeerView } from '../../../schemas/api/peer.ts';
import { containerId, operation, specOf, tenantId } from '../../actors/support.ts';
import { createMemorySink, createMemoryStore, MemoryBucket } from '../../actors/support/memory-store.ts';
import { createPartition, writeOf } from '../../actors/support/partition.ts';
import { newSecrets, madePeer, peerId } from '../../actors/support/vpn.ts';

const attacker = tenantId('attacker');
const neighbour = tenantId('neighbour');
/** More than any bound in this test. */
const endless = 5000;

t.setTimeout(300_000);

async function startPartition(bucket: MemoryBucket): Promise<Partition> {
  const partition = createPartition({ store: createMemoryStore(bucket), events: createMemorySink([]) });
  await partition.start();
  return partition;
}

const ofAttacker = (bucket: MemoryBucket, kind: string): number =>
  bucket.values().filter(({ key, value }) => key.startsWith(`${kind}.${attacker}.`) && value !== null).length;

t.test('containers', async (t) => {
  const bucket = new MemoryBucket();
  let partition = await startPartition(bucket);
  const create = async (tenant: TenantId) => {
    const id = containerId();
    const spec = specOf(`c-${id}`);
    const answer = await writeOf(partition, {
      type: 'container.create',
      tenant,
      id,
      spec,
      idempotency: null,
      op: operation(),
    });
    return { id, ...answer };
  };
  const remove = async (id: ReturnType<typeof containerId>) =>
    (await writeOf(partition, { type: 'container.delete', tenant: attacker, id, op: operation() })).code;
  const kept = await Promise.all(Array.from({ length: 5 }, () => create(attacker)));

  let last = await create(attacker);
  let deleted = 0;
  for (; deleted < endless && last.code === 'created'; deleted++) {
    if ((await remove(last.id)) !== 'accepted') return t.fail('a delete was refused');
    last = await create(attacker);
  }
  t.equal(deleted, limits.deletesPerHourMin, 'the bound with the default caps');
  t.equal(last.code, 'rate_limited');
  const { message, retry_after_seconds: seconds } = JSON.parse(last.body) as {
    message: string;
    retry_after_seconds: number;
  };
  t.match(message, /deleted in the last hour.*wait.*operator/);
  t.ok(seconds > 0 && seconds <= limits.anHourMs / 1000, 'the refusal says how long to wait');
  for (let index = 0; index < 100; index++) {
    if ((await create(attacker)).code !== 'rate_limited') return t.fail('a create was accepted');
  }
  for (const { id } of kept) t.equal(await remove(id), 'accepted', 'existing containers can still be deleted');
  const most = limits.deletesPerHourMin + kept.length;
  t.equal(partition.view.tenant(attacker).tombstones.size, most);
  t.equal((await create(neighbour)).code, 'created', 'another tenant of the partition is as it was');

  await partition.release();
  partition = await startPartition(bucket);
  t.equal(
    partition.view.tenant(attacker).tombstones.size,
    most,
    'the next owner loads no more tombstones than the bound',
  );
  t.equal((await create(attacker)).code, 'rate_limited', 'the next owner refuses too');
  t.ok(ofAttacker(bucket, 'container') <= most);

  const settings = { caps: { containers: 30 } };
  await writeOf(partition, { type: 'tenant.put', tenant: attacker, settings, op: operation() });
  t.equal((await create(attacker)).code, 'created', 'an operator who raises the cap raises the bound');
  return undefined;
});

t.test('peers and their keys', async (t) => {
  const bucket = new MemoryBucket();
  const partition = await startPartition(bucket);
  const ask = (what: object) => writeOf(partition, { ...what, op: operation() } as Parameters<typeof writeOf>[1]);
  const create = async (tenant: TenantId) => {
    const peer = peerId();
    const made = madePeer(`p-${peer}`, 2);
    return { peer, made, ...(await ask({ type: 'peer.create', tenant, peer, made })) };
  };

  const kept = await create(attacker);
  let serial = kept.made.certificate.serial;
  let rotations = 0;
  const rotate = async () => {
    const rotation = { type: 'peer.rotate', tenant: attacker, peer: kept.peer, replaces: serial, ...newSecrets() };
    const answer = await ask(rotation);
    if (answer.code === 'ok') serial = (JSON.parse(answer.body) as { data: PeerView }).data.certificate.serial;
    return answer;
  };
  let rotated = await rotate();
  for (; rotations < endless && rotated.code === 'ok'; rotations++) rotated = await rotate();
  t.equal(rotations, limits.peerRotationsAnHour);
  t.match(rotated, { code: 'rate_limited', body: /retry_after_seconds/ });

  let removed = 0;
  let last = await create(attacker);
  for (; removed < endless && last.code === 'created'; removed++) {
    const { code } = await ask({ type: 'peer.remove', tenant: attacker, peer: last.peer });
    if (code !== 'no_content') return t.fail('a removal was refused');
    last = await create(attacker);
  }
  t.equal(removed, limits.peersGoneAnHourMin);
  t.match(last, { code: 'rate_limited', body: /removed in the last hour/ });
  t.match(await ask({ type: 'peer.remove', tenant: attacker, peer: kept.peer }), { code: 'no_content' });
  t.ok(gonePeers(partition.view.tenant(attacker).peers) <= 2 * (removed + 1) + rotations + 1);
  t.ok(ofAttacker(bucket, 'peer') <= removed + 1);
  t.equal((await create(neighbour)).code, 'created', 'another tenant of the partition is as it was');
  return undefined;
});
