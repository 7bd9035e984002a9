import t from 'tap';
import { hostHandlers, hostOfJoinToken, mergeHosts } from '../../../gateway/operator/hosts.ts';
import { callOf, servicesWith } from '../calls.ts';

const secret = 's'.repeat(43);

t.test('a join token names its host', (t) => {
  t.equal(hostOfJoinToken(`lsj_host-1_${secret}`), 'host-1');
  for (const wrong of ['', `lsj_host-1_${secret}x`, `lsj__${secret}`, `lsj_Host_${secret}`, `x${secret}`]) {
    t.equal(hostOfJoinToken(wrong), undefined, wrong);
  }
  t.end();
});

t.test('a list of hosts is whole or not at all', (t) => {
  const page = (...keys: string[]) =>
    ({ code: 'ok', body: JSON.stringify({ data: keys.map(hostOf), more: false }) }) as const;
  const hostOf = (key: string) => ({ key, region: 'eu', status: 'ready' });
  const merged = mergeHosts([page('b'), page('a', 'c')], 10);
  t.match(JSON.parse(String(merged.body)), { data: [{ key: 'a' }, { key: 'b' }, { key: 'c' }] });
  t.equal(mergeHosts([page('a'), { code: 'unavailable', body: '' }], 10).code, 'unavailable');
  t.end();
});

t.test('a wrong join token and an unknown host get the same answer, and count', async (t) => {
  const call = (token: string) =>
    callOf('host.enrol', { identity: undefined, body: { join_token: token, public_key: 'U' } });
  for (const code of ['unauthenticated', 'not_found'] as const) {
    const services = servicesWith(() => ({ code, body: '' }));
    const answer = await hostHandlers(services)['host.enrol'](call(`lsj_host-1_${secret}`));
    t.match(answer, { code: 'unauthenticated' });
    t.same(services.failures, ['join token']);
  }
  const services = servicesWith();
  t.match(await hostHandlers(services)['host.enrol'](call('rubbish')), { code: 'unauthenticated' });
  t.same([services.asked, services.failures], [[], ['join token']], 'no owner is asked');
  const away = servicesWith(() => ({ code: 'unavailable', body: '' }));
  t.match(await hostHandlers(away)['host.enrol'](call(`lsj_host-1_${secret}`)), { code: 'unavailable' });
  t.same(away.failures, []);
});
