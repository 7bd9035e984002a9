/** Lines of the audit, as text for people. */
import t from 'tap';
import { outcomeText, targetText } from '../../../cli/history/audit.ts';
import { commands, ok } from '../support.ts';
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
  t.equal(targetText({ id: 'c1' }, new Map([['c1', 'web']])), 'web');
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

t.test('audit: names of containers, and a time to the second; JSON has all', async (t) => {
  const lines = [line({ target: { id: 'c1' } }), line({ target: { id: 'c2' }, id: '1-1-0' })];
  const listed = ok(lines);
  const { longshore } = await commands(t, {
    'GET /api/v2/audit': listed,
    'GET /api/v2/compute': ok([{ id: 'c1', name: 'web' }]),
  });
  const { out } = await longshore('audit');
  t.match(out, /^2026-01-02T03:04:05Z +ada .* web +done/m);
  t.match(out, / c2 +done/, 'one that is gone has its id');
  t.match(JSON.parse((await longshore('audit', '--json')).out), [{ target: { id: 'c2' } }, { ts: lines[0]?.ts }]);
  const blind = await commands(t, {
    'GET /api/v2/audit': listed,
    'GET /api/v2/compute': { status: 403, body: { error: 'forbidden' } },
  });
  t.match(await blind.longshore('audit'), { code: 0, out: / c1 +done/ });
});

t.test('trace: a request that changed no container is found in the audit', async (t) => {
  const refused = line({
    action: 'secret.put',
    outcome: 'forbidden',
    target: { secret: 'pw' },
    detail: { scope: 'admin' },
  });
  const { longshore } = await commands(t, { 'GET /api/v2/compute/events': ok([]), 'GET /api/v2/audit': ok([refused]) });
  const { code, out, err } = await longshore('trace', 'r-1');
  t.equal(code, 0);
  t.match(err, /changed no container/);
  t.match(out, /secret\.put +outcome="forbidden: admin" target=pw by=ada/);
  t.match(await longshore('trace', 'r-2'), { code: 1, err: /lines of the audit names the request "r-2"/ });
});
