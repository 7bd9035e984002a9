/** Routing of sessions, by the status of the container and the condition of its host. */
import t from 'tap';
import { session } from '../../../../actors/domain/container/session.ts';
import type { ContainerRecord, ContainerStatus } from '../../../../schemas/api/container.ts';
import type { HostCondition } from '../../../../actors/domain/turn.ts';
import { containerId, tenantId } from '../../support.ts';
import {
  acme,
  agentKeyOf,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  observation,
  stateOf,
  unplaced,
} from '../../support/records.ts';

const up = fleetHost(h1);

function asked(record: ContainerRecord, host = up, by = { tenant: acme, id: record.id }, fleet = fleetOf(host)) {
  const ask = { type: 'container.session', ...by, rid: 'r', budgetMs: 1000 } as const;
  const { reply, changes } = session(stateOf(record), ask, contextOf(fleet));
  t.same(changes.records, [], 'it changes nothing');
  return { code: reply.code, ...(JSON.parse(reply.body) as { data?: unknown; message?: string }) };
}

t.test('by status', (t) => {
  const running: ContainerStatus[] = ['starting', 'running', 'stopping'];
  for (const status of running) {
    const { code, data } = asked(container({ observed: observation(status) }));
    t.equal(code, 'ok', status);
    t.match(data, { host: h1, agent: agentKeyOf(h1), placement: Number });
  }
  const others: ContainerStatus[] = ['pending', 'pulling', 'backoff', 'stopped', 'failed'];
  for (const status of others) {
    const { code, message } = asked(container({ observed: observation(status) }));
    t.equal(code, 'conflict', status);
    t.match(message, new RegExp(`it is ${status}$`));
  }
  t.equal(asked(container({ desired: 'removed', observed: observation('running') })).code, 'conflict', 'removing');
  t.end();
});

t.test('by the condition of its host', (t) => {
  const rows: [HostCondition, string][] = [
    ['up', 'ok'],
    ['unheard', 'ok'],
    ['silent', 'unavailable'],
    ['lost', 'conflict'],
    ['fenced', 'conflict'],
    ['removed', 'conflict'],
  ];
  const record = container({ observed: observation('running') });
  for (const [condition, code] of rows) t.equal(asked(record, { ...up, condition }).code, code, condition);
  for (const key of [undefined, null]) {
    const unkeyed = { ...fleetOf(up), enrolledKey: () => key };
    t.equal(asked(record, up, undefined, unkeyed).code, 'unavailable', 'no key is known');
  }
  t.equal(asked(container({ observed: observation('running'), placement: unplaced })).code, 'conflict');
  t.end();
});

t.test('of another tenant, or of none', (t) => {
  const record = container({ observed: observation('running') });
  t.equal(asked(record, up, { tenant: tenantId('mallory'), id: record.id }).code, 'not_found');
  t.equal(asked(record, up, { tenant: acme, id: containerId() }).code, 'not_found');
  t.end();
});
