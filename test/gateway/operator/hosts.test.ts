import { createUser } from '@nats-io/nkeys';
import t from 'tap';
import { hostRoutes, mergeDrain, progressOf } from '../../../gateway/operator/hosts.ts';
import { limits } from '../../../schemas/limits.ts';
import { hostKey } from '../../actors/support.ts';
import { signedRenewal } from '../../support/host-user.ts';
import { callOf, servicesWith } from '../calls.ts';

const secret = 's'.repeat(43);

t.test('the progress of a drain is the sum of all partitions, or unknown', (t) => {
  const share = (left: number, moving: number, blocked: object[] = []) =>
    ({ code: 'ok', body: JSON.stringify({ data: { left, moving, blocked } }) }) as const;
  const one = { tenant_id: 'acme', id: '00000000-0000-7000-8000-000000000001', reason: 'pinned' };
  const merged = mergeDrain([share(2, 1, [one]), share(0, 0), share(3, 1, [one])]);
  t.same(merged, { left: 5, moving: 2, blocked: [one, one] });
  t.equal(mergeDrain([share(2, 1), { code: 'timeout', body: '' }]), undefined);
  t.equal(mergeDrain([]), undefined, 'the cluster is not known yet');
  const many = Array.from({ length: limits.drainBlocked }, () => one);
  t.equal(mergeDrain([share(200, 0, many), share(200, 0, many)])?.blocked.length, limits.drainBlocked);
  const left = { left: 3, moving: 1, blocked: [] };
  t.match(progressOf(left, 8), { total: 8, moved: 5, left: 3 });
  t.match(progressOf(left, 2), { total: 3, moved: 0, left: 3 }, 'more have come since');
  t.end();
});

t.test('a host is shown with its drain; a drain begins with a count', async (t) => {
  const answers = (draining: boolean, drain: 'ok' | 'timeout') =>
    servicesWith((ask) =>
      ask.type === 'host.drain'
        ? { code: drain, body: JSON.stringify({ data: { left: 2, moving: 0, blocked: [] } }) }
        : { code: 'ok', body: JSON.stringify({ data: { key: 'h1', draining, drain_total: 40 } }) },
    );
  for (const [draining, answer, drain] of [
    [true, 'ok', { total: 40, moved: 36, left: 4, moving: 0, blocked: [] }],
    [true, 'timeout', null],
    [false, 'ok', null],
  ] as const) {
    const result = await hostRoutes(answers(draining, answer))['host.get'](
      callOf('host.get', { params: { key: hostKey('h1') } }),
    );
    t.same(JSON.parse(String((result as { body: string }).body)), { data: { key: 'h1', draining, drain } });
  }
  for (const [body, placed] of [
    [{ draining: true }, 4],
    [{ draining: false }, undefined],
  ] as const) {
    const services = answers(true, 'ok');
    await hostRoutes(services)['host.update'](callOf('host.update', { params: { key: hostKey('h1') }, body }));
    const update = services.asked.map(({ question }) => question).find(({ type }) => type === 'host.update');
    t.equal(update?.type === 'host.update' ? update.placed : 'not asked', placed);
  }
});

t.test('a wrong join token and an unknown host get the same answer, and count', async (t) => {
  const call = (token: string) =>
    callOf('host.enrol', { identity: undefined, body: { join_token: token, public_key: 'U' } });
  for (const code of ['unauthenticated', 'not_found'] as const) {
    const services = servicesWith(() => ({ code, body: '' }));
    const answer = await hostRoutes(services)['host.enrol'](call(`lsj_host-1_${secret}`));
    t.match(answer, { code: 'unauthenticated' });
    t.same(services.failures, ['join token']);
  }
  const services = servicesWith();
  t.match(await hostRoutes(services)['host.enrol'](call('rubbish')), { code: 'unauthenticated' });
  t.same([services.asked, services.failures], [[], ['join token']], 'no owner is asked');
  const away = servicesWith(() => ({ code: 'unavailable', body: '' }));
  t.match(await hostRoutes(away)['host.enrol'](call(`lsj_host-1_${secret}`)), { code: 'unavailable' });
  t.same(away.failures, []);
});

t.test('a renewal that its key did not sign is refused without an owner, and as every other', async (t) => {
  const body = signedRenewal(createUser().getSeed(), hostKey('h1'));
  const call = (more: object = {}) => callOf('host.renew', { identity: undefined, body: { ...body, ...more } });
  const services = servicesWith();
  for (const more of [
    { nonce: 'x'.repeat(22) },
    { host_key: hostKey('h2') },
    { at: '2026-01-01T00:00:00Z' },
    { public_key: createUser().getPublicKey() },
    { signature: 'A'.repeat(86) },
  ]) {
    t.match(await hostRoutes(services)['host.renew'](call(more)), { code: 'unauthenticated' });
  }
  t.same([services.asked, services.failures.length], [[], 5]);
  const refused = servicesWith(() => ({ code: 'unauthenticated', body: '' }));
  t.match(await hostRoutes(refused)['host.renew'](call()), { code: 'unauthenticated' });
  t.same(refused.failures, ['host key']);
  t.match(refused.asked[0]?.question, {
    type: 'host.renew',
    host: 'h1',
    publicKey: body.public_key,
    nonce: body.nonce,
  });
});
