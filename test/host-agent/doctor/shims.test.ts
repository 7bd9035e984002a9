import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { judgeShims, leftShims } from '../../../host-agent/doctor/shims.ts';
import { temporaryFolder } from '../../support/folder.ts';

const idOf = (digit: string): string => digit.repeat(64);
const [known, lost, other] = [idOf('a'), idOf('b'), idOf('c')];

/** A machine with these processes. */
function machine(t: Test) {
  const proc = temporaryFolder(t);
  let next = 100;
  const add = (comm: string, ...words: string[]): string => {
    const pid = String(next++);
    mkdirSync(join(proc, pid));
    writeFileSync(join(proc, pid, 'comm'), `${comm}\n`);
    writeFileSync(join(proc, pid, 'cmdline'), `${words.join('\0')}\0`);
    return pid;
  };
  const shim = (id: string, namespace = 'moby', address = '/run/containerd/containerd.sock') =>
    add('containerd-shim', '/usr/bin/containerd-shim-runc-v2', '-namespace', namespace, '-id', id, '-address', address);
  const left = async (...ids: string[]) =>
    (await leftShims(() => Promise.resolve(new Set(ids)), proc)).map(({ pid }) => pid);
  return { proc, add, shim, left, end: (pid: string) => rmSync(join(proc, pid), { recursive: true }) };
}

t.test('a shim without its container', async (t) => {
  const { add, shim, left } = machine(t);
  add('containerd-shim', 'containerd-shim-runc-v2', 'delete');
  t.same(await left(), []);
  shim(known);
  const stays = shim(lost);
  t.same(await left(known), [stays]);
  t.same(await left(known, lost), []);
  t.same(await left(), [], 'nobody can tell which engine they are of');
});

t.test('shims of others are none of this engine', async (t) => {
  const { shim, left } = machine(t);
  shim(known);
  shim(other, 'k8s.io');
  shim(other, 'moby', '/run/other/containerd.sock');
  t.same(await left(known), []);
});

t.test('a container that is just being removed', async (t) => {
  const { shim, end, proc } = machine(t);
  shim(known);
  const going = shim(lost);
  const list = () => {
    end(going);
    return Promise.resolve(new Set([known]));
  };
  t.same(await leftShims(list, proc), []);
});

t.test('findings of the doctor', (t) => {
  t.match(judgeShims([]), { verdict: 'ok' });
  const many = Array.from({ length: 9 }, (_, at) => ({ pid: String(at + 1), container: lost, place: '' }));
  t.match(judgeShims(many), { verdict: 'warn', says: /1 \(b{12}\), .* and 1 more$/, remedy: /kill PID/ });
  t.end();
});
