/** Of which containers a host may say what they used (invariant A7). */
import t from 'tap';
import { judgeUsage } from '../../../../actors/domain/host/usage.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import type { TombstoneRecord } from '../../../../schemas/api/container.ts';
import { containerId } from '../../support.ts';
import { acme, container, h1, h2, stateOf } from '../../support/records.ts';

t.test('of those that were placed on it', (t) => {
  const moved = container({ history: [h1, h2] });
  const gone: TombstoneRecord = {
    kind: 'tombstone',
    id: containerId(),
    tenant: acme,
    history: [h1],
    goneAtMs: 1,
    idempotency: null,
  };
  const state = stateOf(defaultTenant(acme), moved, gone);
  const judge = (host: typeof h1, id: typeof gone.id) => judgeUsage(state, host, { tenant: acme, id });
  t.same(judge(h1, moved.id), { kind: 'accepted', name: moved.spec.name }, 'also when it runs elsewhere now');
  t.same(judge(h2, moved.id), { kind: 'accepted', name: moved.spec.name });
  t.same(judge(h1, gone.id), { kind: 'accepted', name: undefined }, 'and when it is gone');
  t.same(judge(h2, gone.id), { kind: 'refused' });
  t.same(judge(h1, containerId()), { kind: 'refused' }, 'nobody knows it');
  state.quarantine(`container.${acme}.${moved.id}`);
  t.same(judge(h1, moved.id), { kind: 'unreadable' });
  t.end();
});
