import t from 'tap';
import { isApart } from '../../../host-agent/docker/ownership.ts';
import { choosePorts, parsePortRange, portsOf, sandboxBody, shapeOf } from '../../../host-agent/sandbox/shape.ts';
import { owner } from '../support/decisions.ts';

t.test('a shape has each port once, in order', (t) => {
  t.equal(shapeOf([]), '');
  t.equal(shapeOf(['53/udp', 80, '80/tcp']), '53/udp,80/tcp');
  t.equal(shapeOf([80, '53/udp']), shapeOf(['53/udp', '80']));
  for (const ports of [[], [80], ['53/udp', 80]]) t.equal(shapeOf(portsOf(shapeOf(ports))), shapeOf(ports));
  t.end();
});

t.test('one of a container that is to be in no network is another', (t) => {
  for (const ports of [[], [80, '53/udp']]) {
    const apart = shapeOf(ports, { mode: 'none' });
    t.ok(isApart(apart));
    t.notOk(isApart(shapeOf(ports)));
    t.same(portsOf(apart), portsOf(shapeOf(ports)));
    t.equal(shapeOf(ports, { mode: 'tenant' }), shapeOf(ports));
  }
  t.end();
});

t.test('a range of ports', (t) => {
  t.same(parsePortRange('20000-31999'), { first: 20_000, last: 31_999 });
  t.same(parsePortRange('1 - 1'), { first: 1, last: 1 });
  for (const text of ['', '80', '0-9', '9-8', '1-65536', '1-2-3', 'a-b', '-5-9'])
    t.equal(parsePortRange(text), undefined, text);
  t.end();
});

t.test('free ports from a random one on, around the end of the range', (t) => {
  const range = { first: 100, last: 103 };
  const chosen = (ports: readonly string[], taken: readonly number[], random: number) =>
    [...(choosePorts(ports, range, new Set(taken), random) ?? [])].map(([port, at]) => `${port} at ${at}`);
  t.same(chosen(['80/tcp', '53/udp'], [], 0), ['80/tcp at 100', '53/udp at 101']);
  t.same(chosen(['80/tcp', '53/udp'], [103], 0.6), ['80/tcp at 102', '53/udp at 100']);
  t.same(chosen(['80/tcp'], [100, 101, 102], 0.1), ['80/tcp at 103']);
  t.equal(choosePorts(['80/tcp'], range, new Set([100, 101, 102, 103]), 0.1), undefined);
  t.same(chosen([], [100, 101, 102, 103], 0.99), []);
  t.end();
});

t.test('the body publishes at the chosen ports, bears the labels of its owner, and may do nothing', (t) => {
  const body = sandboxBody(owner, '80/tcp', '10.0.0.1', new Map([['80/tcp', 20_007]]));
  t.match(body, {
    StopSignal: 'SIGKILL',
    Labels: { 'longshore.cluster': 'c1', 'longshore.host': 'h1', 'longshore.sandbox': '80/tcp' },
    ExposedPorts: { '80/tcp': {} },
    HostConfig: {
      PortBindings: { '80/tcp': [{ HostIp: '10.0.0.1', HostPort: '20007' }] },
      RestartPolicy: { Name: 'no' },
      CapDrop: ['ALL'],
      ReadonlyRootfs: true,
    },
  });
  t.notMatch(JSON.stringify(body), 'longshore.container', 'no inventory takes it for a container of a tenant');
  t.end();
});
