import { Registry } from 'prom-client';
import t from 'tap';
import { RateLimiter } from '../../../gateway/auth/rate-limits.ts';
import { Revocations } from '../../../gateway/auth/revocations.ts';
import { Backend } from '../../../gateway/backend/backend.ts';
import { createMeters } from '../../../gateway/metrics.ts';
import { Answers } from '../../../lib/nats/answers.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { quietLog } from '../support.ts';

t.test('until the cluster is known nothing is served, and no token is trusted', async (t) => {
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const backend = new Backend({
    redis: undefined,
    expectedId: undefined,
    requestDeadlineMs: 1000,
    revocations: new Revocations(),
    tenantRates: new RateLimiter({ perSecond: 1, burst: 1 }, clock, { shared: false }),
    clock,
    log: quietLog,
    meters: createMeters(new Registry()),
    answers: new Answers(clock),
    onOutcome: () => {},
    onOtherCluster: () => t.fail('there is no cluster'),
  });
  const acme = 'acme' as TenantId;
  t.equal(backend.ready(), false);
  t.same(await backend.ask('read', { type: 'tenant.get', tenant: acme, rid: 'r' }, 1000), {
    code: 'unavailable',
    body: '',
  });
  t.equal(backend.partitions(), undefined);
  t.equal(backend.knowledgeOf(acme), 'unheard');
  t.same([backend.queued('read'), backend.tenantsRefused()], [0, 0]);
  const match = { by: 'tenant' } as const;
  t.doesNotThrow(() => backend.announceRevocation({ tenant: acme, match, issuedUntilS: 0, untilMs: 0 }));
  t.doesNotThrow(() => backend.stop(), 'it may be stopped before it is up');
});
