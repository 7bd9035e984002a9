/** What a person reads of a line of the audit. */
import t from 'tap';
import { outcomeText, targetText } from '../../../cli/history/audit.ts';
import type { Schemas } from '../../../cli/client/api.ts';

const line = (changes: Partial<Schemas['AuditLine']>): Schemas['AuditLine'] => ({
  id: '1-2-0',
  ts: '2026-01-02T03:04:05.006Z',
  action: 'container.create',
  outcome: 'done',
  tenant: 'acme',
  by: { tenant: 'acme', subject: 'ada', token: 'k1', address: '192.0.2.7' },
  request_id: 'r-1',
  target: {},
  detail: null,
  ...changes,
});

t.test('a target is named by its one part, or by all of its parts', (t) => {
  t.equal(targetText({ id: 'c1' }), 'c1');
  t.equal(targetText({ peer: 'p1', token: 't1' }), 'peer=p1 token=t1');
  t.equal(targetText({}), '');
  t.end();
});

t.test('an outcome has its reason', (t) => {
  t.equal(outcomeText(line({})), 'done');
  t.equal(outcomeText(line({ outcome: 'forbidden', detail: { scope: 'deploy' } })), 'forbidden: deploy');
  t.equal(outcomeText(line({ outcome: 'invalid', detail: { fields: ['name', 'ports'] } })), 'invalid: name, ports');
  t.equal(outcomeText(line({ outcome: 'over_quota', detail: { dimension: 'cpu' } })), 'over_quota: cpu');
  const session = { started_at: '2026-01-02T03:04:00Z', bytes_in: 3, bytes_out: 40, exit_code: 0, reason: 'exited' };
  t.equal(outcomeText(line({ action: 'container.exec.ended', detail: { session } })), 'exited, 3 bytes in, 40 out');
  t.end();
});
