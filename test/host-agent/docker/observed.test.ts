import t from 'tap';
import type { Inspection } from '../../../host-agent/docker/answers.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import { foundFrom, observedFrom } from '../../../host-agent/docker/observed.ts';
import { created, down, found, id, tenant, up } from '../support/decisions.ts';

const inspection = (state: Partial<Inspection['State']>, marks: Record<string, string> = {}): Inspection => ({
  Id: 'd1',
  State: {
    Status: 'running',
    OOMKilled: false,
    ExitCode: 0,
    Error: '',
    StartedAt: '2026-01-02T03:04:05.5Z',
    FinishedAt: '0001-01-01T00:00:00Z',
    ...state,
  },
  Config: {
    Labels: {
      [labels.tenant]: tenant,
      [labels.container]: id,
      [labels.placement]: '2',
      [labels.spec]: 's',
      [labels.image]: 'sha256:one',
      ...marks,
    },
  },
  NetworkSettings: {
    Ports: {
      '9090/udp': null,
      '8080/tcp': [
        { HostIp: '0.0.0.0', HostPort: '32768' },
        { HostIp: '::', HostPort: '32769' },
      ],
    },
  },
});

t.test('a container of ours is read from its labels', (t) => {
  t.match(foundFrom(inspection({})), {
    dockerId: 'd1',
    tenant,
    id,
    placement: 2,
    spec: 's',
    imageId: 'sha256:one',
    state: {
      phase: 'running',
      run: 'd1:2026-01-02T03:04:05.5Z',
      addresses: [
        { port: '8080/tcp', address: '0.0.0.0:32768' },
        { port: '8080/tcp', address: '[::]:32769' },
      ],
    },
  });
  const image = { digest: `sha256:${'a'.repeat(64)}`, resolved_at: '2026-01-02T03:04:05.000Z' };
  const marks = { [labels.digest]: image.digest, [labels.resolvedAt]: image.resolved_at };
  t.same(foundFrom(inspection({}, marks))?.image, image);
  t.notOk(foundFrom(inspection({}, { ...marks, [labels.digest]: 'one' }))?.image, 'whatever somebody wrote there');
  t.notOk(foundFrom(inspection({}, { ...marks, [labels.resolvedAt]: 'then' }))?.image);
  t.equal(foundFrom(inspection({}, { [labels.tenant]: '' })), undefined, 'no agent made it');
  t.equal(foundFrom(inspection({}, { [labels.container]: 'web' })), undefined, 'no agent made it');
  t.end();
});

for (const [status, phase] of [
  ['created', 'created'],
  ['running', 'running'],
  ['restarting', 'running'],
  ['paused', 'paused'],
  ['exited', 'exited'],
  ['removing', 'removing'],
  ['dead', 'dead'],
] as const) {
  t.test(`the engine says ${status} → ${phase}`, (t) => {
    t.equal(foundFrom(inspection({ Status: status }))?.state.phase, phase);
    t.end();
  });
}

t.test('an end carries its exit code and the time that it was up, never less than nothing', (t) => {
  const ended = { Status: 'exited', ExitCode: 137, OOMKilled: true } as const;
  const exitOf = (FinishedAt: string) => foundFrom(inspection({ ...ended, FinishedAt }))?.state;
  t.match(exitOf('2026-01-02T03:04:07.5Z'), { exit: { exitCode: 137, oomKilled: true, upMs: 2000 } });
  t.match(exitOf('2026-01-02T03:04:01Z'), { exit: { upMs: 0 } }, 'the clock was set back');
  t.end();
});

t.test('of several containers with one id the newest placement counts, then one that runs', (t) => {
  const old = found(up, { dockerId: 'old', placement: 1 });
  const next = found(created, { dockerId: 'next', placement: 2 });
  const twin = found(down(), { dockerId: 'also', placement: 2 });
  const running = found(up, { dockerId: 'runs', placement: 2 });
  const observed = observedFrom([old, twin, next, running]);
  t.match(observed, { kind: 'present', found: { dockerId: 'runs' } });
  t.same(observed.kind === 'present' && observed.extra.map(({ dockerId }) => dockerId), ['also', 'next', 'old']);
  t.same(observedFrom([]), { kind: 'absent' });
  t.end();
});

t.test('output of a health check is text, without control characters', (t) => {
  const fault = (Output: string): unknown => {
    const Health = { Status: 'unhealthy', FailingStreak: 3, Log: [{ ExitCode: 2, Output }] };
    return (foundFrom(inspection({ Health }))?.state as { readonly healthFault?: string }).healthFault;
  };
  t.equal(fault('\u001b[31mno route\u001b[0m\r\nto db\n'), 'no route\nto db');
  t.equal(fault('a\u0007\u009bb\u202ec'), 'a\ufffd\ufffdb\ufffdc');
  t.equal(fault('\u001b[2J'), 'exit code 2');
  t.end();
});
