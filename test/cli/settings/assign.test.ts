import t from 'tap';
import { assigned, changesOf, checkKeys } from '../../../cli/settings/assign.ts';
import { merged } from '../../../lib/values.ts';
import { NetworkBody } from '../../../schemas/api/network.ts';
import { PolicyBody } from '../../../schemas/api/policy.ts';
import { TenantSettings } from '../../../schemas/api/tenant.ts';

t.test('values have the form that their key has', (t) => {
  t.same(
    assigned(TenantSettings, { caps: { containers: 20, ports: 7 } }, [
      'caps.containers=50',
      'caps.mem_bytes=null',
      'region_caps.eu-1.containers=3',
      'regions=default,eu-1',
      'registries=["ghcr.io","*.example.com"]',
    ]),
    {
      caps: { containers: 50, ports: 7, mem_bytes: null },
      region_caps: { 'eu-1': { containers: 3 } },
      regions: ['default', 'eu-1'],
      registries: ['ghcr.io', '*.example.com'],
    },
  );
  const proxied = ['endpoint=10.0.0.1', 'proxy.host=p', 'proxy.port=3128', 'proxy.direct_fallback=true', 'dns='];
  t.same(assigned(NetworkBody, { proxy: null }, proxied), {
    endpoint: '10.0.0.1',
    proxy: { host: 'p', port: 3128, direct_fallback: true },
    dns: [],
  });
  const swapped = ['health=null', 'health.http.port=8080', 'health.http.path=/a=b'];
  t.same(assigned(PolicyBody, { health: { tcp: { port: 1 } } }, swapped), {
    health: { http: { port: 8080, path: '/a=b' } },
  });
  t.end();
});

t.test('a misspelt key or value is refused, with the right one', (t) => {
  const rows: readonly (readonly [string, string])[] = [
    ['caps', '"caps" must be KEY=VALUE'],
    ['cap.containers=1', 'there is no setting "cap": did you mean caps?'],
    ['caps.contaners=1', 'caps has no setting "contaners": did you mean containers?'],
    ['caps.x=1', 'caps has no setting "x": it is one of '],
    ['caps.containers.more=1', 'caps.containers has no setting "more"'],
    ['region_caps.EU.containers=1', 'region_caps has no setting "EU"'],
    ['caps.containers=many', 'caps.containers must be a whole number, or null, not "many"'],
    ['caps=1', 'caps must be set by its keys, such as caps.containers=VALUE, not "1"'],
    ['regions=[default', 'regions must be a list: a,b or ["a","b"]'],
  ];
  for (const [text, message] of rows) {
    t.throws(() => assigned(TenantSettings, {}, [text]), { name: 'WrongUsage' }, text);
    t.throws(() => assigned(TenantSettings, {}, [text]), new RegExp(message.replaceAll(/[[\](){}?.*+|\\^$]/g, '\\$&')));
  }
  t.throws(() => assigned(PolicyBody, {}, ['restart=onfailure']), /restart must be always, on_failure, never, not/);
  t.throws(() => checkKeys(PolicyBody, { health: { http: { prt: 1 } } }), /health.http has no setting "prt": did you/);
  checkKeys(PolicyBody, { restart: 'never', health: null });
  t.end();
});

t.test('given settings win, and the rest stays; the plan has the differences', (t) => {
  const before = { regions: ['default'], caps: { containers: 20, ports: 50 }, registries: null };
  const after = merged(before, { caps: { containers: 5 }, regions: ['eu'] });
  t.same(after, { regions: ['eu'], caps: { containers: 5, ports: 50 }, registries: null });
  t.same(changesOf(before, after), ['regions: ["default"] → ["eu"]', 'caps.containers: 20 → 5']);
  t.same(changesOf({}, { proxy: { host: 'p' } }), ['proxy.host: not set → "p"']);
  t.same(changesOf(before, before), []);
  const proxy = { host: 'p', port: 1 };
  t.same(changesOf({ proxy }, { proxy: null }), ['proxy: {"host":"p","port":1} → null']);
  t.same(changesOf({ proxy: null }, { proxy }), ['proxy: null → {"host":"p","port":1}']);
  t.same(changesOf({ proxy }, {}), ['proxy.host: "p" → not set', 'proxy.port: 1 → not set']);
  t.same(changesOf({ region_caps: {} }, { region_caps: { eu: { ports: 1 } } }), ['region_caps.eu.ports: not set → 1']);
  t.end();
});
