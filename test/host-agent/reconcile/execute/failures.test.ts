import t from 'tap';
import { EngineError, type EngineFault } from '../../../../host-agent/docker/errors.ts';
import {
  clearFailure,
  createFailure,
  pullFailure,
  startFailure,
  startWords,
} from '../../../../host-agent/reconcile/execute/failures.ts';
import { PrivateImageError, PrivateImagesFull, RefusedPull } from '../../../../host-agent/images/pulls.ts';
import type { Login } from '../../../../host-agent/secrets/values.ts';
import { RegistryError } from '../../../../host-agent/images/registries.ts';
import { settle } from '../../../../host-agent/reconcile/restart/restart-state.ts';
import { limits } from '../../../../schemas/limits.ts';
import { restartState } from '../../support/decisions.ts';

const refused = (message: string, status = 500) => new EngineError('call', { kind: 'refused', status }, message);
const fault = (kind: EngineFault) => new EngineError('call', kind, 'detail');

// Messages of Docker 20.10 and 28, Docker Hub, distribution 2.8 and 3, ghcr.io and quay.io.
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
  ['image_invalid', 'failed to register layer: max depth exceeded'],
  ['image_pull', 'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused'],
  ['image_pull', 'dial tcp: lookup registry.invalid: no such host'],
  ['image_pull', 'Get "https://registry-1.docker.io/v2/": Forbidden'],
  ['image_pull', 'Get "https://registry-1.docker.io/v2/": Proxy Authentication Required'],
  ['image_pull', 'toomanyrequests: You have reached your pull rate limit. unauthorized pulls'],
  ['image_pull', 'received unexpected HTTP status: 502 Bad Gateway'],
  [
    'image_pull',
    'Head "https://r.example/v2/x/manifests/1": unable to decode token response: invalid character \'<\' looking for beginning of value',
  ],
  ['image_invalid', 'image operating system "windows" cannot be used on this platform'],
  ['image_pull', 'write /var/lib/docker/tmp/x: no space left on device'],
] as const) {
  t.test(`${message.slice(0, 70)} → ${reason}`, (t) => {
    const kind = reason === 'image_pull' ? 'retry' : 'failed';
    const outcome = pullFailure(refused(message));
    t.match(outcome, { kind, why: { reason }, detail: message });
    t.notMatch(JSON.stringify('why' in outcome && outcome.why), message, 'reported in our own words');
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
      t.match(explain(refused(message)), { kind: 'retry', fault: 'host' }, explain.name);
    }
    t.end();
  });
}

t.test('other messages are no fault of the host', (t) => {
  for (const message of [
    'exec: "nope": executable file not found in $PATH',
    'driver failed: Bind for 127.0.0.1:80 failed: port is already allocated',
    'dial tcp: lookup registry.invalid: no such host',
    'OCI runtime create failed: container_linux.go:380: starting container process caused: permission denied',
  ]) {
    for (const explain of [pullFailure, createFailure, startFailure]) {
      t.notMatch(explain(refused(message)), { fault: 'host' }, `${explain.name}: ${message}`);
    }
  }
  t.end();
});

t.test('with pull_policy never, the agent waits for the image to appear', (t) => {
  const message = 'image docker.io/a/b:1 is not on this host, and its pull_policy is never: not found';
  t.match(pullFailure(refused(message, 404)), { kind: 'retry', why: { reason: 'image_not_found' } });
  t.end();
});

t.test('a fault of the host that stays is reported as one after a few tries', (t) => {
  const bounds = { minMs: 1, maxMs: 1 };
  const outcome = startFailure(refused('no space left on device'));
  let remembered = restartState();
  const reasons = Array.from({ length: limits.hostFaultTries + 1 }, () => {
    remembered = settle(remembered, { kind: 'start', dockerId: 'd1', prepare: true, again: false }, outcome, 0, bounds);
    return remembered.why?.reason;
  });
  t.same(reasons, [...Array<string>(limits.hostFaultTries - 1).fill('start_failed'), 'host_fault', 'host_fault']);
  t.match(
    remembered,
    { attempt: { phase: 'waiting' }, why: { message: /disk of this host is full/ } },
    'another attempt follows',
  );
  t.end();
});

t.test('an engine that is away says nothing about an image', (t) => {
  t.match(pullFailure(fault({ kind: 'unreachable' })), { kind: 'outage' });
  t.match(pullFailure(fault({ kind: 'deadline', ms: limits.engineCallMs })), { kind: 'outage' });
  t.match(pullFailure(fault({ kind: 'deadline', ms: limits.enginePullMs })), {
    kind: 'retry',
    why: { reason: 'image_pull' },
  });
  t.match(pullFailure(fault({ kind: 'aborted' })), { kind: 'changed' });
  t.end();
});

t.test('failed creates and starts have a reason each', (t) => {
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

t.test('a failure names what a tenant can change', (t) => {
  const runc = 'OCI runtime create failed: container_linux.go:380: starting container process caused: ';
  for (const [explain, saying, words] of [
    [createFailure, 'No command specified', { reason: 'create_failed', message: /process\.command/ }],
    [createFailure, 'Minimum memory limit allowed is 6MB', { reason: 'create_failed', message: /mem_limit/ }],
    [createFailure, 'Duplicate mount point: /data', { reason: 'create_failed', message: /same path/ }],
    [createFailure, "the working directory 'C:/x' is invalid", { reason: 'create_failed', message: /working_dir/ }],
    [createFailure, 'image operating system "windows" cannot be used on this platform', { reason: 'image_invalid' }],
    [
      startFailure,
      `${runc}chdir to cwd ("/nope") set in config.json failed: permission denied`,
      { message: /working_dir/ },
    ],
    [startFailure, `${runc}exec: "nope": executable file not found in $PATH: unknown`, { message: /process\.command/ }],
    [startFailure, 'unable to find user bob: no matching entries in passwd file', { message: /process\.user/ }],
    [
      startFailure,
      `${runc}process_linux.go:545: container init caused: rootfs_linux.go:76: mounting "/a" to rootfs at "/etc" caused: mount through procfd: not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)?`,
      { message: /another path/ },
    ],
    [pullFailure, 'manifest unknown', { message: /correct the image/ }],
    [pullFailure, 'unauthorized: authentication required', { message: /put a login/ }],
    [pullFailure, 'no matching manifest for linux/amd64 in the manifest list entries', { message: /declare one/ }],
  ] as const)
    t.match(explain(refused(saying, 400)), { why: words }, saying);
  t.end();
});

t.test('a registry that limits the rate of pulls is asked no sooner than it says', (t) => {
  const pull = { kind: 'pull', reference: 'r', policy: 'always' } as const;
  const pauses = (saying: string): number[] => {
    let state = restartState();
    return Array.from({ length: 4 }, () => {
      state = settle(state, pull, pullFailure(refused(saying)), 0, { minMs: 1000, maxMs: 60_000 });
      return state.attempt.phase === 'waiting' ? state.attempt.untilMs / 1000 : 0;
    });
  };
  t.same(pauses('toomanyrequests: slow down'), [60, 120, 240, 480]);
  t.same(pauses('toomanyrequests: retry-after: 143.27µs, allowed: 44000/minute'), [60, 120, 240, 480]);
  t.same(pauses('429 Too Many Requests (Retry-After: 900)'), [900, 1800, 3600, 3600]);
  t.same(pauses('toomanyrequests: retry-after: 9h'), [3600, 3600, 3600, 3600]);
  t.same(pauses('dial tcp 1.2.3.4:443: connect: connection refused'), [1, 2, 4, 8], 'others as before');
  t.end();
});

/** Whatever an engine says, a tenant reads one of a few fixed messages. */
t.test('no text of the engine or of a registry reaches a report', (t) => {
  const secret = 'the-answer-of-a-neighbour';
  const sayings = [
    `Error response from daemon: Get "http://10.0.0.5:6379/v2/": net/http: HTTP/1.x transport connection broken: malformed HTTP response "${secret}"`,
    `error parsing HTTP 404 response body: invalid character 'o' looking for beginning of value: "${secret}"`,
    `unauthorized: ${secret}`,
    `manifest unknown: ${secret}`,
    `toomanyrequests: ${secret}`,
    `x509: certificate is valid for ${secret}, not r.example`,
    `dial tcp: lookup ${secret}: no such host`,
    `Client.Timeout exceeded while awaiting headers: ${secret}`,
    `invalid reference format: ${secret}`,
    `no matching manifest for ${secret}`,
    `write /var/lib/docker/${secret}: no space left on device`,
    `OCI runtime create failed: exec: "${secret}": executable file not found in $PATH`,
    `exec /${secret}: exec format error`,
    `unable to find user ${secret}: no matching entries in passwd file`,
    `Bind for 10.0.0.5:${secret} failed: port is already allocated`,
    secret,
    `${secret} and its pull_policy is never: not found`,
  ];
  for (const saying of sayings) {
    for (const explain of [pullFailure, createFailure, startFailure, clearFailure]) {
      for (const status of [200, 400, 404, 500]) {
        const outcome = explain(refused(saying, status));
        t.notMatch(JSON.stringify('why' in outcome && outcome.why), secret, `${explain.name}: ${saying}`);
        t.equal('detail' in outcome && outcome.detail, saying, 'the operator finds it in the log');
      }
    }
    t.notMatch(startWords(saying).message, secret);
  }
  t.end();
});

t.test('failed pulls fall into classes', (t) => {
  for (const [saying, words] of [
    ['Get "https://r/v2/": x509: certificate signed by unknown authority', /TLS/],
    ['http: server gave HTTP response to HTTPS client', /TLS/],
    ['net/http: request canceled while waiting for connection (Client.Timeout exceeded)', /in time/],
    ['dial tcp 1.2.3.4:443: i/o timeout', /in time/],
    ['dial tcp 1.2.3.4:443: connect: connection refused', /cannot be reached/],
    ['toomanyrequests: slow down', /limits the rate/],
    ['received unexpected HTTP status: 502 Bad Gateway', /agent’s log/],
  ] as const) {
    t.match(pullFailure(refused(saying)), { kind: 'retry', why: { reason: 'image_pull', message: words } }, saying);
  }
  t.match(pullFailure(new RegistryError('not_allowed', 'x')), {
    kind: 'failed',
    why: { reason: 'registry_not_allowed', message: /not allowed on this host/ },
  });
  t.match(pullFailure(new RegistryError('private_address', 'r.example resolves to 10.0.0.1')), {
    kind: 'failed',
    why: { reason: 'registry_not_allowed', message: /^(?!.*10\.0\.0\.1)/ },
  });
  t.match(pullFailure(new RegistryError('unresolved', 'x')), { kind: 'retry', why: { reason: 'image_pull' } });
  t.end();
});

const third: Login = { kind: 'login', login: { username: 'u', password: 'p', version: 3 }, isCurrent: true };

t.test('a refused login is final if it is the newest, or if there is none', (t) => {
  const hub = "pull access denied for a/b, repository does not exist or may require 'docker login': denied";
  for (const detail of ['unauthorized: authentication required', hub]) {
    for (const [login, kind, message, version] of [
      [third, 'failed', /refuses the login/, 3],
      [{ kind: 'none' }, 'failed', /put a login for this registry/, 0],
      ['old', 'retry', /out of date/, undefined],
      [{ kind: 'unknown' }, 'retry', /could not be asked/, undefined],
    ] as const) {
      const outcome = pullFailure(new RefusedPull(refused(detail), login));
      const why = { reason: 'image_auth', message, login: version } as const;
      t.match(outcome, { kind, why, detail }, `${JSON.stringify(login)}: ${detail}`);
    }
  }
  t.match(pullFailure(new RefusedPull(refused('manifest unknown'), { kind: 'unknown' })), {
    why: { reason: 'image_not_found' },
  });
  for (const [login, version] of [
    [undefined, undefined],
    [{ kind: 'none' }, 0],
    [third, 3],
  ] as const)
    t.match(pullFailure(new PrivateImageError('r.example/x:1', login)), {
      kind: 'failed',
      why: { reason: 'image_auth', login: version },
    });
  t.match(pullFailure(new PrivateImagesFull('r.example/x:1')), {
    kind: 'retry',
    why: { reason: 'image_pull', message: /1000 private images of this tenant/ },
  });
  t.end();
});

t.test('an engine that does not see the files of secrets', (t) => {
  const detail = 'invalid mount config for type "bind": bind source path does not exist: /run/x/0';
  t.match(createFailure(refused(detail, 400)), { kind: 'retry', why: { reason: 'secret_missing' }, detail });
  t.end();
});
