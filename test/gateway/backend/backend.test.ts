import t from 'tap';
import { RateLimiter } from '../../../gateway/auth/rate-limits.ts';
import { Revocations } from '../../../gateway/auth/revocations.ts';
import { Backend } from '../../../gateway/backend/backend.ts';
import { Answers } from '../../../lib/nats/answers.ts';
import { PartitionClient } from '../../../lib/rpc/partition-client.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { quietLog } from '../support.ts';

t.test('until the cluster is known nothing is served, and no token is trusted', async (t) => {
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const client = new PartitionClient({ requestDeadlineMs: 1000, clock, log: quietLog });
  const backend = new Backend({
    client,
    redis: undefined,
    expectedId: undefined,
    revocations: new Revocations(),
    tenantRates: new RateLimiter({ perSecond: 1, burst: 1 }, clock, { shared: false }),
    clock,
    log: quietLog,
    answers: new Answers(clock),
    onOtherCluster: () => t.fail('there is no cluster'),
  });
  const acme = 'acme' as TenantId;
  t.equal(backend.ready(), false);
  t.same(await client.ask('read', { type: 'tenant.get', tenant: acme, rid: 'r' }, 1000), {
    code: 'unavailable',
    body: '',
  });
  t.equal(backend.partitions(), undefined);
  t.equal(backend.knowledgeOf(acme), 'unheard');
  t.same([client.queued('read'), backend.tenantsRefused()], [0, 0]);
  const match = { by: 'tenant' } as const;
  t.doesNotThrow(() => backend.announceRevocation({ tenant: acme, match, issuedUntilS: 0, untilMs: 0 }));
  t.doesNotThrow(() => backend.stop(), 'it may be stopped before it is up');
});
