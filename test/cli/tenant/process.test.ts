import t from 'tap';
import { namesProcess, processWith, tmpfsIn, usualMemory } from '../../../cli/tenant/process.ts';
import { containerDefaults } from '../../../schemas/api/fields/container.ts';

t.test('options of docker run become settings of a process', (t) => {
  const options = {
    entrypoint: 'sh',
    user: '1000:1000',
    workdir: '/srv',
    tmpfs: ['/tmp', '/run:rw,noexec,size=64MiB,mode=1777'],
    shmSize: '0.5g',
    init: true,
    readOnly: true,
    ulimit: ['nofile=1024:4096', 'nproc=64'],
  } as const;
  t.same(processWith(options, ['-c', 'date'], {}, '96m'), {
    entrypoint: ['sh'],
    command: ['-c', 'date'],
    user: '1000:1000',
    working_dir: '/srv',
    tmpfs: { '/tmp': '96m', '/run': '64m' },
    shm_size: '512m',
    init: true,
    read_only: true,
    ulimits: { nofile: '1024:4096', nproc: '64' },
  });
  t.same(processWith({}, [], {}, '96m'), {});
  t.same(processWith({ entrypoint: '' }, [], {}, '96m'), { entrypoint: [] }, 'that of the image is taken away');
  t.equal(usualMemory, containerDefaults.mem_limit);
  t.end();
});

t.test('a change keeps what it does not name, and takes back what it resets', (t) => {
  const before = { command: ['worker'], user: '1000', tmpfs: { '/tmp': '64m' }, ulimits: { nofile: '10' } };
  t.same(processWith({ tmpfs: ['/run:size=1m'] }, [], before, '96m'), {
    ...before,
    tmpfs: { '/tmp': '64m', '/run': '1m' },
  });
  t.same(processWith({ reset: ['command', 'ulimit'] }, [], before, '96m'), { user: '1000', tmpfs: before.tmpfs });
  t.same(processWith({ reset: ['tmpfs'], tmpfs: ['/run:size=1m'] }, ['web'], before, '96m'), {
    ...before,
    command: ['web'],
    tmpfs: { '/run': '1m' },
  });
  t.end();
});

t.test('mistakes that the command line itself finds', (t) => {
  const refused = (options: Parameters<typeof processWith>[0], message: string): void =>
    void t.throws(() => processWith(options, [], {}, '96m'), { name: 'WrongUsage', message });
  refused({ ulimit: ['1024'] }, '--ulimit 1024: it must be NAME=SOFT[:HARD], such as nofile=1024:4096');
  refused({ tmpfs: ['/a:exec'] }, `--tmpfs /a:exec: "exec" can't be set: give a path and size, such as /tmp:size=64m`);
  t.same(tmpfsIn('/a:uid=1,size=1k,exec'), { path: '/a', size: '1k', unknown: ['uid=1', 'exec'] });
  t.end();
});

t.test('options that name nothing of it', (t) => {
  t.notOk(namesProcess({}, []));
  t.ok(namesProcess({}, ['worker']));
  t.ok(namesProcess({ entrypoint: '' }, []));
  t.ok(namesProcess({ reset: ['user'] }, []));
  t.end();
});
