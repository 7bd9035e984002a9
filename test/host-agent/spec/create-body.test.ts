import t from 'tap';
import { defaultCapabilities } from '../../../host-agent/spec/confinement.ts';
import { createBody, specHash } from '../../../host-agent/spec/create-body.ts';
import { defaultPolicy } from '../../../schemas/api/policy.ts';
import { container, owner } from '../support/decisions.ts';

const secretFile = { name: 'a', version: 1, mode: 0o400, uid: 0, gid: 0 };
const digest = `sha256:${'a'.repeat(64)}`;

t.test('the hash of a spec changes only with fields that a running container cannot change', (t) => {
  const base = specHash(container());
  const env = { A: '1', B: '2' };
  t.equal(specHash(container({ env })), specHash(container({ env: { B: '2', A: '1' } })), 'order of keys');
  t.equal(specHash(container({ ports: [80] })), specHash(container({ ports: ['80/tcp'] })), 'spelling of a port');
  for (const changes of [
    { generation: 9 },
    { placement: 9 },
    { desired: 'stopped' },
    { name: 'x' },
    { pull_policy: 'always' },
  ] as const) {
    t.equal(specHash(container(changes)), base, JSON.stringify(changes));
  }
  for (const changes of [
    { tag: '2' },
    { digest },
    { env: { A: '2' } },
    { ports: [81] },
    { ports: ['80/udp'] },
    { cpu_millis: 1 },
    { mem_bytes: 1 },
    { secret_refs: [{ env: 'A', secret: 'a' }] },
    { config_files: [{ path: '/a', content: 'b' }] },
    { secrets: { env: { A: { name: 'a', version: 1 } }, files: {} } },
    { secrets: { env: {}, files: { '/a': secretFile } } },
    { process: { user: '7' } },
    { network: { mode: 'none' as const } },
  ]) {
    t.not(specHash(container(changes)), base, JSON.stringify(changes));
  }
  t.not(specHash(container({ policy: { ...defaultPolicy, no_check: true } })), base, 'no check');
  const secrets = (version: number, more: object = {}) =>
    specHash(
      container({ secrets: { env: { A: { name: 'a', version } }, files: { '/a': { ...secretFile, ...more } } } }),
    );
  t.equal(specHash(container({ secrets: { env: {}, files: {} } })), base, 'none');
  t.equal(secrets(1), secrets(1));
  for (const other of [secrets(2), secrets(1, { version: 2 }), secrets(1, { mode: 0o440 }), secrets(1, { uid: 7 })]) {
    t.not(other, secrets(1), 'another value or another file is another version');
  }
  t.end();
});

t.test('the body of a create carries the declared container', (t) => {
  const desired = container({ ports: [8080, '53/udp'], env: { A: '1' }, cpu_millis: 9000 });
  const image = { reference: 'x:1', imageId: 'sha256:one', imageLabels: ['note', 'longshore.tenant'] };
  const createInput = {
    owner,
    ...image,
    publishAddress: '192.0.2.7',
    hostCpuMillis: 2000,
    capabilities: defaultCapabilities,
    diskBytes: 7,
    sandbox: null,
  };
  const body = createBody({ ...createInput, container: desired, secrets: { PASSWORD: 'hunter2' } });
  t.match(body, {
    Image: 'sha256:one',
    Labels: { note: '', 'longshore.tenant': 'acme', 'longshore.reference': 'x:1' },
    Env: ['A=1', 'PASSWORD=hunter2'],
    ExposedPorts: { '8080/tcp': {}, '53/udp': {} },
    HostConfig: {
      NanoCpus: 2_000_000_000,
      RestartPolicy: { Name: 'no' },
      SecurityOpt: ['no-new-privileges'],
      StorageOpt: { size: '7' },
      CapDrop: ['ALL'],
      CapAdd: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID'],
      Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }],
      PortBindings: { '8080/tcp': [{ HostIp: '192.0.2.7', HostPort: '' }], '53/udp': [{ HostIp: '192.0.2.7' }] },
      LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '3' } },
    },
  });
  const { Healthcheck } = createBody({
    ...createInput,
    container: container({ policy: { ...defaultPolicy, no_check: true } }),
    secrets: {},
  });
  t.same(Healthcheck, { Test: ['NONE'] }, 'that of the image is switched off');
  t.same(body.Healthcheck, { Test: ['NONE'] }, 'neither the policy nor the image has one');
  const { Labels } = body as { Labels: Record<string, string> };
  t.notMatch(JSON.stringify(Labels), 'hunter2');
  const resolved = { digest: `sha256:${'a'.repeat(64)}`, resolved_at: '2026-01-02T03:04:05.000Z' };
  t.match(createBody({ ...createInput, resolved, container: desired, secrets: {} }).Labels, {
    'longshore.digest': resolved.digest,
    'longshore.resolved-at': resolved.resolved_at,
  });
  t.match(createBody({ ...createInput, container: container({ cpu_millis: 1 }), secrets: {} }), {
    HostConfig: { NanoCpus: 10_000_000 },
  });
  const sandboxed = createBody({ ...createInput, container: desired, secrets: {}, sandbox: 's1' });
  // The engine refuses ports for a container in the namespace of another.
  t.match(sandboxed, { ExposedPorts: {}, HostConfig: { NetworkMode: 'container:s1', PortBindings: {} } });
  t.notMatch(JSON.stringify(sandboxed), '8080/tcp');
  t.end();
});
