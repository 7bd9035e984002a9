/** The part `process` of a container's document: its checks, merge patches, and what is stored. */
import t from 'tap';
import { containerFields } from '../../../schemas/api/fields/container.ts';
import type { Process } from '../../../schemas/api/fields/process-part.ts';

const { process: kind } = containerFields;
const faultsOf = (value: unknown): string[] => {
  const faults: string[] = [];
  kind.parse(value, (message, ...below) => void faults.push(`${below.join('.')} ${message}`));
  return faults;
};
const parsed = (value: unknown): Process | undefined => kind.parse(value, () => undefined);

t.test('the accepted form, without defaults', (t) => {
  const whole = {
    entrypoint: [],
    command: ['sh', '-c', 'a b'],
    user: 'www-data:1000',
    working_dir: '/srv/app',
    tmpfs: { '/tmp': '64m' },
    shm_size: '1g',
    init: true,
    read_only: true,
    ulimits: { nofile: '1024:4096', nproc: '64' },
  };
  t.same(parsed(whole), whole);
  t.same(parsed({}), {});
  t.same(parsed({ init: false, read_only: false, tmpfs: {}, ulimits: {}, user: null, command: null }), {});
  t.same(parsed({ entrypoint: [] }), { entrypoint: [] }, 'no entrypoint is another than that of the image');
  t.end();
});

t.test('refusals, each at its place', (t) => {
  for (const [value, fault] of [
    ['sh', / must be an object/],
    [{ comand: ['a'] }, /^comand is no setting: entrypoint, command, /],
    [{ command: 'sh -c a' }, /^command must be a list of strings/],
    [{ command: ['a', 1] }, /^command\.1 must be a string/],
    [{ command: ['a\0b'] }, /^command\.0 can't contain NUL/],
    [{ command: ['\ud800'] }, /^command\.0 must be valid Unicode/],
    [{ command: Array(257).fill('a') }, /^command must be at most 256 strings/],
    [{ entrypoint: ['a'.repeat(40_000)] }, /^entrypoint must be at most 32768 bytes in all/],
    [{ user: 'a b' }, /^user must be the name or the number/],
    [{ user: '4294967296' }, /^user numbers must be at most 2147483647/],
    [{ working_dir: 'app' }, /^working_dir must be an absolute path/],
    [{ tmpfs: { tmp: '1m' } }, /^tmpfs\.tmp must be an absolute path/],
    [{ tmpfs: { '/': '1m' } }, /^tmpfs\.\/ must be the absolute path of a folder/],
    [{ tmpfs: { '/a/../b': '1m' } }, /^tmpfs\.\/a\/\.\.\/b must be the absolute path of a folder/],
    [{ tmpfs: { '/a,exec': '1m' } }, /^tmpfs\.\/a,exec must be the absolute path of a folder/],
    [{ tmpfs: { '/dev/x': '1m' } }, /^tmpfs\.\/dev\/x must not be below/],
    [{ tmpfs: { '/a': '1 GB' } }, /^tmpfs\.\/a must be a whole number of bytes/],
    [{ shm_size: '0' }, /^shm_size must be a whole number of bytes/],
    [{ init: 'yes' }, /^init must be true or false/],
    [{ ulimits: { core: '1' } }, /^ulimits\.core can't be set: data, /],
    [{ ulimits: { nofile: 1024 } }, /^ulimits\.nofile values must be strings/],
    [{ ulimits: { nofile: '2:1' } }, /^ulimits\.nofile must be "soft:hard"/],
    [{ ulimits: { nofile: '1048577' } }, /^ulimits\.nofile must be at most 1048576/],
  ] as const) {
    const [first, ...others] = faultsOf(value);
    t.match(first, fault, JSON.stringify(value).slice(0, 60));
    t.same(others, []);
  }
  t.end();
});

t.test('merge patches', (t) => {
  const before: Process = { command: ['a'], user: '1', tmpfs: { '/a': '1m', '/b': '2m' } };
  const patch = { command: null, init: true, tmpfs: { '/a': null, '/c': '3m' } };
  const value = kind.parsePatch(patch, () => undefined);
  t.ok(value);
  const after = kind.merged(before, value!);
  t.same(after, { user: '1', init: true, tmpfs: { '/b': '2m', '/c': '3m' } });
  t.same(kind.merged(after, { init: false }), { user: '1', tmpfs: { '/b': '2m', '/c': '3m' } });
  t.same(kind.merged(before, kind.patchBetween(before, after)), after);
  t.same(kind.patchBetween(after, after), {});
  t.same(kind.canonical({ user: '1', init: true }), kind.canonical({ init: true, user: '1' }));
  t.same(kind.faultsOf(after), []);
  t.notOk(kind.isStored({ command: 'a' }));
  t.ok(kind.isStored(after));
  t.end();
});
