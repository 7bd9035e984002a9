/** Conclusions from a probe inside a container; the engine is played by its answers. */
import { Readable } from 'node:stream';
import t from 'tap';
import type { Network } from '../../../host-agent/docker/answers.ts';
import { createEngine } from '../../../host-agent/docker/engine.ts';
import type { Call, Transport } from '../../../host-agent/docker/transport.ts';
import { createProbe } from '../../../host-agent/network/firewall-probe.ts';
import { isBridgedFiltered } from '../../../host-agent/network/firewall.ts';
import type { HostKey } from '../../../schemas/ids.ts';

/** A frame of a container's log (Docker Engine API, attach). */
function frame(text: string): Buffer {
  const head = Buffer.alloc(8);
  head[0] = 1;
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

const ownId = 'ab'.repeat(32);
const ownContainer = {
  Id: ownId,
  Name: '/agent',
  Image: 'sha256:own',
  State: {
    Status: 'running',
    Running: true,
    Pid: 1,
    ExitCode: 0,
    Error: '',
    StartedAt: '',
    FinishedAt: '',
    OOMKilled: false,
  },
  Config: { Labels: {} },
  NetworkSettings: {},
};

/** `words`: what the container says about each of its targets. */
function engineSaying(words: (targets: number) => readonly string[]) {
  const names: string[] = [];
  const made: { readonly Image: string; readonly HostConfig: { readonly Mounts: unknown[] } }[] = [];
  let targets = 0;
  const answer = ({ name, path, body }: Call): { status: number; body: string } => {
    if (name === 'version') return { status: 200, body: '{"Version":"1","ApiVersion":"1.41"}' };
    if (name === 'container create') {
      names.push(new URL(path, 'http://engine').searchParams.get('name') ?? '');
      const sent = JSON.parse(Buffer.from(body!.bytes).toString()) as (typeof made)[0] & { Entrypoint: string[] };
      made.push(sent);
      targets = (JSON.parse(sent.Entrypoint[3]!) as [unknown[]])[0].length;
      return { status: 201, body: '{"Id":"p"}' };
    }
    if (name === 'container inspect' && path.includes(ownId))
      return { status: 200, body: JSON.stringify(ownContainer) };
    return name === 'container start' ? { status: 204, body: '' } : { status: 200, body: '[]' };
  };
  const transport: Transport = {
    call: (call) => {
      const { status, body } = answer(call);
      return Promise.resolve({ status, headers: {}, body: Buffer.from(body) });
    },
    open: () =>
      Promise.resolve({
        status: 200,
        headers: {},
        stream: Readable.from([frame(`2026-01-01T00:00:00Z ${JSON.stringify(words(targets))}\n`)]),
      }),
    close: () => {},
  };
  return { engine: createEngine(transport), names, made };
}

const network = (gateways: readonly string[]): Network => ({
  Id: 'n',
  Name: 'longshore-n',
  Created: '',
  IPAM: { Config: gateways.map((Gateway) => ({ Gateway })) },
});
const never = new AbortController().signal;
const owner = { cluster: 'c1', host: 'h1' as HostKey };

t.test('the probe proves the firewall only if it tried a service of the host', async (t) => {
  const refused = engineSaying((count) => Array<string>(count).fill('ECONNREFUSED'));
  const probe = createProbe(refused.engine, owner);
  t.same(await probe(network(['127.0.0.1']), never), { kind: 'held' });
  t.match(await probe(network([]), never), { kind: 'failed', why: /no gateway/ });

  const connected = engineSaying((count) => Array<string>(count).fill('connected'));
  t.match(await createProbe(connected.engine, owner)(network([]), never), { kind: 'reached', what: /metadata/ });
});

t.test('an agent in a container probes with its own image, of which the host has no files', async (t) => {
  const { engine, made } = engineSaying((count) => Array<string>(count).fill('ECONNREFUSED'));
  const mounts = `612 590 8:1 /data/containers/${ownId}/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n`;
  t.same(await createProbe(engine, owner, () => mounts)(network(['127.0.0.1']), never), { kind: 'held' });
  t.match(made, [{ Image: 'sha256:own', HostConfig: { Mounts: [] } }]);
});

t.test('agents of two clusters on one engine tell their probes apart', async (t) => {
  const { engine, names } = engineSaying(() => ['timeout', 'timeout']);
  for (const cluster of ['c1', 'c2']) await createProbe(engine, { ...owner, cluster })(network(['127.0.0.1']), never);
  t.equal(new Set(names).size, 2, names.join());
  t.end();
});

t.test('the kernel’s settings say whether bridged packets pass the rules', (t) => {
  const [ipv4, ipv6] = ['bridge-nf-call-iptables', 'bridge-nf-call-ip6tables'];
  for (const [files, expected] of [
    [{ [ipv4]: '1\n', [ipv6]: '1\n', if_inet6: '' }, true],
    [{ [ipv4]: '1\n', [ipv6]: '0\n', if_inet6: '' }, false],
    [{ [ipv4]: '0\n', [ipv6]: '1\n', if_inet6: '' }, false],
    [{ [ipv4]: '1\n' }, true],
    [{}, false],
  ] as const) {
    const read = (path: string) => (files as Record<string, string>)[path.split('/').at(-1)!];
    t.equal(isBridgedFiltered(read), expected, JSON.stringify(files));
  }
  t.end();
});
