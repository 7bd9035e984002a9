/** Counters of a container, found by the kernel's files of both versions. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { createCgroups, fieldIn, foldersIn, mountsIn, netIn } from '../../../host-agent/usage/cgroups.ts';
import { temporaryFolder } from '../../support/folder.ts';

const id = 'd'.repeat(64);

const first = `
25 1 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 25 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`;
const second = '30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate';
const nested = '30 1 0:26 /docker/outer /sys/fs/cgroup rw - cgroup2 cgroup2 rw';

t.test('folders of a process', (t) => {
  t.same(
    foldersIn(`4:memory:/docker/${id}\n3:cpu,cpuacct:/docker/${id}\n0::/`, id, mountsIn(first)),
    new Map([
      ['memory', `/sys/fs/cgroup/memory/docker/${id}`],
      ['cpu', `/sys/fs/cgroup/cpu,cpuacct/docker/${id}`],
      ['cpuacct', `/sys/fs/cgroup/cpu,cpuacct/docker/${id}`],
      ['', '/sys/fs/cgroup/unified/'],
    ]),
  );
  const scope = `/system.slice/docker-${id}.scope`;
  t.same(foldersIn(`0::${scope}\n`, id, mountsIn(second)), new Map([['', `/sys/fs/cgroup${scope}`]]));
  t.same(
    foldersIn(`0::/docker/outer/docker/${id}`, id, mountsIn(nested)),
    new Map([['', `/sys/fs/cgroup/docker/${id}`]]),
    'below a root of its own',
  );
  t.same(foldersIn(`0::/../docker/${id}`, id, mountsIn(second)), new Map(), 'above the root that is seen');
  t.equal(foldersIn('0::/system.slice/sshd.service', id, mountsIn(second)), undefined, 'a pid that is used again');
  t.end();
});

t.test('numbers of the files', (t) => {
  t.equal(fieldIn('usage_usec 12345\nuser_usec 1\n', 'usage_usec'), 12345);
  t.equal(fieldIn('cache 1\ntotal_inactive_file 77\n', 'total_inactive_file'), 77);
  t.equal(fieldIn('cache 1\ntotal_inactive_file 77\n', 'inactive_file'), undefined, 'not a part of a name');
  t.equal(fieldIn('', 'usage_usec'), undefined);
  const dev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo:  999       1    0    0    0     0          0         0      999       1    0
  eth0: 1500      10    0    0    0     0          0         0      700       5    0
  eth1:   20       1    0    0    0     0          0         0        3       1    0
`;
  t.same(netIn(dev), { rxBytes: 1520, txBytes: 703 });
  t.end();
});

function machine(t: Test, files: Readonly<Record<string, string>>) {
  const root = temporaryFolder(t);
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  for (const [path, text] of Object.entries(files)) put(path, text);
  return { cgroups: createCgroups(root), put };
}

t.test('counters of version 1', (t) => {
  const { cgroups, put } = machine(t, {
    'proc/self/mountinfo': first,
    'proc/7/cgroup': `4:memory:/docker/${id}\n3:cpu,cpuacct:/docker/${id}\n2:pids:/docker/${id}\n`,
    [`sys/fs/cgroup/cpu,cpuacct/docker/${id}/cpuacct.usage`]: '1234567890\n',
    [`sys/fs/cgroup/memory/docker/${id}/memory.usage_in_bytes`]: '5000\n',
    [`sys/fs/cgroup/memory/docker/${id}/memory.stat`]: 'inactive_file 1\ntotal_inactive_file 2000\n',
    [`sys/fs/cgroup/memory/docker/${id}/memory.oom_control`]: 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
    'proc/vmstat': 'pgfault 1\noom_kill 9\n',
  });
  t.same([cgroups.oomKills(id, 7), cgroups.machineOomKills()], [2, 9]);
  t.same(cgroups.read(id, 7), { cpuMs: 1234, memBytes: 3000 });
  t.equal(cgroups.read(id, 8), undefined, 'no such process');
  put('proc/7/cgroup', '4:memory:/docker/another\n');
  t.equal(cgroups.read(id, 7), undefined, 'another process has its pid now');
  t.end();
});

t.test('a network namespace without an interface', (t) => {
  const dev = (...names: string[]) =>
    `Inter-|   Receive\n face |bytes\n${names.map((name) => `  ${name}: 1 2\n`).join('')}`;
  const { cgroups, put } = machine(t, {
    'proc/self/mountinfo': second,
    'proc/7/cgroup': `0::/system.slice/docker-${id}.scope\n`,
    'proc/7/net/dev': dev('lo', 'eth0'),
  });
  t.equal(cgroups.isCutOff(id, 7), false);
  put('proc/7/net/dev', dev('lo'));
  t.equal(cgroups.isCutOff(id, 7), true);
  t.equal(cgroups.isCutOff(id, 8), undefined, 'no such process');
  t.equal(cgroups.isCutOff('another', 7), undefined, 'a process of another container');
  t.end();
});

t.test('counters of version 2', (t) => {
  const folder = `sys/fs/cgroup/system.slice/docker-${id}.scope`;
  const { cgroups } = machine(t, {
    'proc/self/mountinfo': second,
    'proc/7/cgroup': `0::/system.slice/docker-${id}.scope\n`,
    [`${folder}/cpu.stat`]: 'usage_usec 1999999\nuser_usec 5\n',
    [`${folder}/memory.current`]: '5000\n',
    [`${folder}/memory.stat`]: 'anon 1\ninactive_file 6000\n',
    [`${folder}/pids.current`]: '3\n',
    [`${folder}/memory.events`]: 'low 0\nhigh 0\nmax 8\noom 4\noom_kill 3\noom_group_kill 0\n',
  });
  t.same([cgroups.oomKills(id, 7), cgroups.machineOomKills()], [3, undefined]);
  t.same(cgroups.read(id, 7), { cpuMs: 1999, memBytes: 5000 }, 'statistics may be newer than the sum');
  t.equal(cgroups.pids(id, 7), 3);
  t.equal(cgroups.net(7), null);
  t.end();
});
