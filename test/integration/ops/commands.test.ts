/** An operator's commands have the help, the faults and the exit codes of `longshore`. */
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run, type Ran } from '../../../dev/process/run.ts';

const longshore = (program: string, ...args: string[]): Promise<Ran> =>
  run(process.execPath, [join(repositoryRoot, 'dist', program), ...args], {
    deadlineMs: 60_000,
    env: { PATH: process.env['PATH'], LONGSHORE_CONFIG: '/nowhere' },
  });
const ops = (...args: string[]): Promise<Ran> => longshore('ops/longshore.js', ...args);

t.test('help names the arguments and the options', async (t) => {
  t.match(await ops('backup', '--help'), { code: 0, stdout: /^Usage: longshore backup \[options\] <folder>/ });
  t.match(await ops('restore', '-h'), { code: 0, stdout: /\(choices: "1", "3", "5"\)/ });
  const keys = await ops('nats-keys', '--help');
  for (const name of ['create', 'list', 'rotate', 'revoke']) t.match(keys.stdout, new RegExp(`^ {2}${name} `, 'm'));
  t.match(await ops('help', 'nats-keys'), { code: 0, stdout: keys.stdout });
});

t.test('a wrong argument is named, and what was meant, unless that destroys', async (t) => {
  t.match(await ops('backup'), { code: 2, stdout: '', stderr: /missing required argument 'folder'/ });
  t.match(await ops('backup', 'one', 'two'), { code: 2, stderr: /too many arguments/ });
  t.match(await ops('backup', 'x', '--without-log'), { code: 2, stderr: /\(Did you mean --without-logs\?\)/ });
  t.match(await ops('restore', 'x', '--replicas', '2'), { code: 2, stderr: /Allowed choices are 1, 3, 5/ });
  const { code, stderr } = await ops('restore', 'x', '--replac');
  t.equal(code, 2);
  t.notMatch(stderr, /Did you mean/);
  t.match(await ops('nats-keys'), { code: 2, stderr: /missing required argument 'folder'/ });
});

t.test('a failure ends with 1, and says what to do', async (t) => {
  t.match(await ops('backup', 'x'), { code: 1, stdout: '', stderr: /^NATS_URLS is missing/ });
  const folder = t.testdir();
  t.match(await ops('nats-keys', 'list', folder), { code: 1, stderr: /has no keys of a cluster.*nats-keys create/ });
});

t.test('nats-keys makes keys with and without the word create', async (t) => {
  const folder = join(t.testdir(), 'keys');
  const made = await ops('nats-keys', folder, 'g1');
  t.match(made, { code: 0, stdout: /^HOSTS_ACCOUNT +A[A-Z2-7]{55}$/m });
  t.match(await ops('nats-keys', 'create', folder, 'g1'), { code: 0, stdout: made.stdout });
  t.match(await ops('nats-keys', 'rotate', folder, 'nobody'), { code: 2, stderr: /nobody is no name/ });
});

t.test('the package of the command line alone says where they run', async (t) => {
  for (const name of ['backup', 'restore', 'nats-keys'])
    t.match(await longshore('cli/longshore.js', name, 'x', '--now'), {
      code: 1,
      stderr: new RegExp(`^"${name}" is not in the package of the command line alone: run it in a checkout`),
    });
});
