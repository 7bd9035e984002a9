import t from 'tap';
import { EngineError, type EngineFault } from '../../host-agent/docker/errors.ts';
import { createFailure, pullFailure, startFailure } from '../../host-agent/failures.ts';
import { settle } from '../../host-agent/memory.ts';
import { limits } from '../../schemas/limits.ts';
import { memory } from './support/decisions.ts';

const refused = (message: string, status = 500) => new EngineError('call', { kind: 'refused', status }, message);
const fault = (kind: EngineFault) => new EngineError('call', kind, 'detail');

// Words of Docker 20.10 and 28, of Docker Hub, of distribution 2.8 and 3, of ghcr.io and quay.io.
for (const [reason, message] of [
  ['image_not_found', 'manifest for 127.0.0.1:5000/longshore/web:9 not found: manifest unknown: manifest unknown'],
  ['image_not_found', 'manifest unknown'],
  [
    'image_not_found',
    "pull access denied for nosuch, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
  ],
  ['image_not_found', 'name unknown: repository name not known to registry'],
  [
    'image_not_found',
    'failed to resolve reference "docker.io/library/busybox:9": docker.io/library/busybox:9: not found',
  ],
  ['image_auth', 'unauthorized: authentication required'],
  ['image_auth', 'Head "https://ghcr.io/v2/x/manifests/1": denied'],
  ['image_auth', 'Get "https://r.example/v2/": no basic auth credentials'],
  ['image_auth', 'error parsing HTTP 403 response body: 403 Forbidden'],
  ['image_invalid', 'invalid reference format'],
  ['image_invalid', 'no matching manifest for linux/amd64 in the manifest list entries'],
  ['image_invalid', 'image with reference x was found but does not match the specified platform'],
  ['image_invalid', 'missing signature key: unsupported manifest media type application/vnd.x'],
  ['image_pull', 'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused'],
  ['image_pull', 'dial tcp: lookup registry.invalid: no such host'],
  ['image_pull', 'toomanyrequests: You have reached your pull rate limit. unauthorized pulls'],
  ['image_pull', 'received unexpected HTTP status: 502 Bad Gateway'],
  ['image_pull', 'write /var/lib/docker/tmp/x: no space left on device'],
] as const) {
  t.test(`${message.slice(0, 70)} → ${reason}`, (t) => {
    const kind = reason === 'image_pull' ? 'retry' : 'failed';
    t.match(pullFailure(refused(message)), { kind, why: { reason, message } });
    t.end();
  });
}

const hostFaults = [
  'write /var/lib/docker/tmp/GetImageBlob361: no space left on device',
  'failed to register layer: Error processing tar file(exit status 1): write /usr/lib/libgio.so: no space left on device',
  'failed to register layer: Untar re-exec error: exit status 1: output: read-only file system',
  'failed to register layer: error creating overlay mount to /var/lib/docker/overlay2/51a8/merged: no such file or directory',
  "no available IPv4 addresses on this network's address pools: longshore-0a1b (e8c2e6)",
  "failed to set up container networking: no available IPv4 addresses on this network's address pools: longshore-0a1b (e8c2e6)",
  'could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network',
  'all predefined address pools have been fully subnetted',
  'driver failed programming external connectivity on endpoint x (1f): Bind for 0.0.0.0:0 failed: all ports are allocated',
  'driver failed programming external connectivity on endpoint x (1f):  (iptables failed: iptables --wait -t nat -A DOCKER -p tcp: iptables: No chain/target/match by that name. (exit status 1))',
  'adding interface veth12 to bridge br-34 failed: exchange full',
  'failed to mount overlay: input/output error',
  'OCI runtime create failed: fork/exec /usr/bin/runc: cannot allocate memory',
] as const;
for (const message of hostFaults) {
  t.test(`a fault of the host: ${message.slice(0, 70)}`, (t) => {
    for (const explain of [pullFailure, createFailure, startFailure]) {
      t.match(explain(refused(message)), { kind: 'retry', ofHost: true }, explain.name);
    }
    t.end();
  });
}

t.test('no fault of the host', (t) => {
  for (const message of [
    'exec: "nope": executable file not found in $PATH',
    'driver failed: Bind for 127.0.0.1:80 failed: port is already allocated',
    'dial tcp: lookup registry.invalid: no such host',
    'OCI runtime create failed: container_linux.go:380: starting container process caused: permission denied',
  ]) {
    for (const explain of [pullFailure, createFailure, startFailure]) {
      t.notOk('ofHost' in explain(refused(message)), `${explain.name}: ${message}`);
    }
  }
  t.end();
});

t.test('an image that may come from no registry is waited for', (t) => {
  const message = 'image docker.io/a/b:1 is not on this host, and its pull_policy is never: not found';
  t.match(pullFailure(refused(message, 404)), { kind: 'retry', why: { reason: 'image_not_found' } });
  t.end();
});

t.test('a fault of the host that stays is reported as one, after a few tries', (t) => {
  const bounds = { minMs: 1, maxMs: 1 };
  const outcome = startFailure(refused('no space left on device'));
  let remembered = memory();
  const reasons = Array.from({ length: limits.hostFaultTries + 1 }, () => {
    remembered = settle(remembered, { kind: 'start', dockerId: 'd1', prepare: true, again: false }, outcome, 0, bounds);
    return remembered.why?.reason;
  });
  t.same(reasons, [...Array<string>(limits.hostFaultTries - 1).fill('start_failed'), 'host_fault', 'host_fault']);
  t.match(remembered, { attempt: { phase: 'waiting' }, why: { message: /no space left/ } }, 'and it is tried again');
  t.end();
});

t.test('an engine that is away explains nothing about an image', (t) => {
  t.match(pullFailure(fault({ kind: 'unreachable' })), { kind: 'outage' });
  t.match(pullFailure(fault({ kind: 'deadline', ms: limits.engineCallMs })), { kind: 'outage' });
  t.match(pullFailure(fault({ kind: 'deadline', ms: limits.enginePullMs })), {
    kind: 'retry',
    why: { reason: 'image_pull' },
  });
  t.match(pullFailure(fault({ kind: 'aborted' })), { kind: 'changed' });
  t.end();
});

t.test('create and start', (t) => {
  t.match(createFailure(refused('invalid mount', 400)), { kind: 'failed', why: { reason: 'create_failed' } });
  t.match(createFailure(refused('no space left on device')), { kind: 'retry', why: { reason: 'create_failed' } });
  t.match(createFailure(fault({ kind: 'deadline', ms: 1 })), { kind: 'outage' });
  t.match(startFailure(refused('driver failed: Bind for 127.0.0.1:80 failed: port is already allocated')), {
    kind: 'retry',
    why: { reason: 'port_unavailable' },
  });
  t.match(startFailure(refused('exec: "nope": executable file not found in $PATH', 400)), {
    kind: 'retry',
    why: { reason: 'start_failed' },
  });
  t.end();
});
