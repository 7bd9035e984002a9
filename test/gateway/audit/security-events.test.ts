import t from 'tap';
import { securityEventKinds, securityEventOf } from '../../../gateway/audit/security-events.ts';
import { errorStatus, type ErrorCode } from '../../../schemas/errors.ts';
import type { ContainerId, HostKey, NetworkName, TenantId } from '../../../schemas/ids.ts';
import { routes, type RouteName } from '../../../schemas/routes.ts';
import { callOf } from '../calls.ts';
import { peerId } from '../vpn/support.ts';

const params = { peer: peerId };
const rotate = callOf('peer.rotate', { params });
const ok = { code: 'ok', body: '' } as const;

t.test('successes and unknown outcomes are logged, refusals are not', (t) => {
  const done = { tenant: 'acme', peer: peerId, outcome: 'done', requestId: 'r' };
  t.same(securityEventOf(rotate, ok), { event: 'peer_rotated', fields: done });
  const unknown = { event: 'peer_rotated', fields: { ...done, outcome: 'unknown' } };
  for (const code of Object.keys(errorStatus) as ErrorCode[]) {
    const isUnknown = errorStatus[code] >= 500;
    t.same(securityEventOf(rotate, { code, body: '' }), isUnknown ? unknown : undefined, code);
  }
  t.equal(securityEventOf(rotate, 'streamed'), undefined);
  t.equal(securityEventOf(callOf('peer.get', { params }), ok), undefined, 'a read');
  t.end();
});

t.test('of a change of a peer only what decides whether it may connect', (t) => {
  const fieldsOf = (body: Parameters<typeof callOf<'peer.update'>>[1]) =>
    securityEventOf(callOf('peer.update', { params, ...body }), ok)?.fields;
  const same = { tenant: 'acme', peer: peerId, outcome: 'done', requestId: 'r' };
  t.same(fieldsOf({ body: { enabled: false, name: 'phone' } }), { ...same, enabled: false });
  t.same(fieldsOf({ body: { expiresAtMs: 0 } }), { ...same, expires_at: '1970-01-01T00:00:00.000Z' });
  t.same(fieldsOf({ body: { expiresAtMs: null } }), { ...same, expires_at: null }, 'it never expires now');
  t.equal(fieldsOf({ body: { name: 'phone' } }), undefined);
  t.end();
});

t.test('an enrolment names its host, and a text that is no join token names none', (t) => {
  const enrol = (join_token: string) =>
    securityEventOf(callOf('host.enrol', { identity: undefined, body: { join_token, public_key: 'U' } }), ok);
  t.match(enrol(`lsj_h1_${'s'.repeat(43)}`), { event: 'host_enrolled', fields: { host: 'h1' } });
  t.equal(enrol('rubbish'), undefined);
  t.end();
});

/** Writes that a restore undoes without opening anything again, and why. */
const safelyUndone: { readonly [R in RouteName]?: string } = {
  'container.create': 'hosts keep the container as an orphan',
  'spec.create': 'hosts keep the container as an orphan',
  'container.start': 'it is stopped again',
  'container.run': 'a process ends with its session',
  'labels.put': 'a label opens nothing',
  'labels.patch': 'a label opens nothing',
  'project.put': 'the file of a container opens nothing',
  'policy.put': 'how a container is restarted, stopped and checked opens nothing',
  'host.create': 'the host is unknown',
  'host.renew': 'credentials end by themselves',
  'key.create': 'the key is refused',
  'peer.create': 'the peer is refused',
  'peer.token.create': 'the token is refused',
  'peer.link.create': 'the link is refused',
  'peer.link.redeem': 'links end within seven days, and a person sees in the audit who opened one',
  'network.create': 'the network is unknown',
  'secret.reseal': 'what is sealed with a key that gateways lack is answered with 503',
  'login.choose': 'a session ends by itself',
  logout: 'its handler logs `signed_out`',
  'sign_in.device': 'nobody is signed in yet',
  'sign_in.device_token': 'sessions are tokens, which `signed_out` and revocations end',
};

t.test('each write has an event, or is undone safely', (t) => {
  const writes = routes.filter(({ method }) => method !== 'GET').map(({ name }) => name);
  t.same(
    writes.filter((name) => securityEventKinds[name] === undefined && safelyUndone[name] === undefined),
    [],
  );
  t.same(
    Object.keys(safelyUndone).filter((name) => name in securityEventKinds || !writes.some((write) => write === name)),
    [],
    'and none is in both, or gone',
  );
  t.end();
});

t.test('destructive calls of operators and tenants are in the list, without values', (t) => {
  const id = 'c' as ContainerId;
  const own = { tenant: 'acme', container: 'c' };
  const inTenant = { tenant: 'acme' as TenantId, id };
  const network = 'office' as NetworkName;
  for (const [call, event, fields] of [
    [callOf('container.stop', { params: { id } }), 'container_stopped', own],
    [callOf('container.delete', { params: { id } }), 'container_removed', own],
    [
      callOf('container.update', { params: { id }, body: { env: { PASSWORD: 'secret' } } }),
      'container_changed',
      { ...own, changed: ['env'] },
    ],
    [callOf('container.secrets.put', { params: { id } }), 'container_secrets_changed', own],
    [
      callOf('spec.patch', { params: { id }, body: { desired: 'stopped', env: { A: 'secret' } } }),
      'container_spec_patched',
      { ...own, changed: ['desired', 'env'], desired: 'stopped' },
    ],
    [
      callOf('container.operate', { params: inTenant, body: { config_files: [] } }),
      'container_operated',
      { ...own, changed: ['config_files'] },
    ],
    [
      callOf('network.put', { params: { network }, body: { tenants: ['other' as TenantId] } as never }),
      'network_changed',
      { network, tenants: ['other'] },
    ],
    [
      callOf('network.servers.put', { params: { network }, body: { host_keys: ['h1' as HostKey] } }),
      'network_served',
      { network, host_keys: ['h1'] },
    ],
    [callOf('network.servers.remove', { params: { network } }), 'network_unserved', { network }],
    [
      callOf('host.update', { params: { key: 'h1' as HostKey }, body: { cordoned: true, remove_orphans: true } }),
      'host_changed',
      { host: 'h1', change: { cordoned: true } },
    ],
  ] as const) {
    t.same(securityEventOf(call, ok), { event, fields: { ...fields, outcome: 'done', requestId: 'r' } }, event);
  }
  const approval = callOf('host.update', { params: { key: 'h1' as HostKey }, body: { remove_orphans: true } });
  t.equal(securityEventOf(approval, ok), undefined, 'nothing to repeat');
  t.end();
});
