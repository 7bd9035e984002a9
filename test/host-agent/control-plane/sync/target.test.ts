import t from 'tap';
import { createSyncTarget, type TargetParts } from '../../../../host-agent/control-plane/sync/target.ts';
import { createFaults } from '../../../../host-agent/faults.ts';
import { emptyDesired } from '../../../../host-agent/workload/desired.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { incarnationOfEpoch, restoredCluster, type Cluster } from '../../../../schemas/records/cluster.ts';
import { quietLog } from '../../../actors/support.ts';

const cluster: Cluster = { id: 'c1', partitions: 1, format: 1 };

t.test('a host that ignores the control plane says so, until it obeys again', (t) => {
  const faults = createFaults(quietLog);
  const parts: Pick<TargetParts, 'sender' | 'desired' | 'faults'> = {
    sender: { host: 'h1' as HostKey, user: 'U' },
    desired: emptyDesired('c1'),
    faults,
  };
  const target = createSyncTarget(parts as TargetParts);
  const atMs = Date.parse('2026-06-02');
  const { epochBases: [base = 0] = [] } = restoredCluster(cluster, undefined, [17], atMs);
  const seen = base + 18;
  target.obeyed?.(seen);
  t.same(faults.list(), [], 'a former owner may answer once during a takeover');
  target.obeyed?.(seen);
  t.match(faults.list(), [{ kind: 'control_plane_behind', message: /restore again with --incarnation-above \d+,/ }]);
  const named = Number(/--incarnation-above (\d+)/.exec(faults.list()[0]?.message ?? '')?.[1]);
  t.equal(named, incarnationOfEpoch(seen));
  const { epochBases: [next = 0] = [] } = restoredCluster(cluster, undefined, [17], named);
  t.ok(next + 18 > seen, 'with that number the next restore is obeyed');
  target.obeyed?.(undefined);
  t.same(faults.list(), []);
  target.obeyed?.(seen);
  t.same(faults.list(), []);
  t.end();
});
