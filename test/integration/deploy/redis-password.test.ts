/** The users of docs/deploy.md, "Redis", in a real Redis: its steps change the password. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { onFreePort, startServer } from '../../../dev/process/process.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutTools } from '../../support/tools.ts';

const skip = await skipWithoutTools('redis-server');
const [, page = ''] = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8').split('\n## Redis\n');
const blocks = [...page.split('\n## ')[0]!.matchAll(/^```(\w*)\n([^]*?)^```/gm)].map(([, kind = '', text = '']) => ({
  kind,
  text,
}));
const [configuration, users] = blocks.map(({ text }) => text);
const typed = (page.match(/ACL (?:SETUSER|SAVE)[^\n`]*/g) ?? []).map((line) => line.trim());

t.test('the password of the gateways changes as documented', { skip, timeout: 60_000 }, async (t) => {
  const folder = temporaryFolder(t);
  const aclFile = join(folder, 'users.acl');
  writeFileSync(aclFile, users!.replace('>PASSWORD', '>old').replace('ADMIN_PASSWORD', 'admin'));
  const tool = await toolHere('redis-server');
  const start = async () =>
    onFreePort(async (port) => {
      const file = join(folder, 'redis.conf');
      const text = configuration!
        .replace('bind 10.0.0.21', 'bind 127.0.0.1')
        .replace('port 0', `port ${port}`)
        .replace(/^tls-.*\n/gm, '')
        .replace('/etc/redis/users.acl', aclFile);
      writeFileSync(file, text);
      const server = await startServer({
        name: 'redis-server',
        command: tool.path,
        args: [file],
        env: { ...process.env, ...tool.env },
        cwd: folder,
        logFile: join(folder, 'redis.log'),
        port,
        ready: async () => (await as(t, port, 'admin', 'admin').call('ACL', 'WHOAMI')) === 'admin',
        readyDeadlineMs: 30_000,
        stopGraceMs: 5_000,
      });
      return { port, stop: () => server.stop() };
    });
  const first = await start();
  t.teardown(() => first.stop());
  const admin = as(t, first.port, 'admin', 'admin');
  const gateway = as(t, first.port, 'gateway', 'old');
  t.equal(await gateway.incrby('longshore:x', 1), 1);
  for (const [user, password] of [
    ['gateway', 'NEW'],
    ['admin', 'old'],
    ['default', ''],
  ] as const)
    await t.rejects(as(t, first.port, user, password).incrby('longshore:x', 1), /WRONGPASS|NOAUTH/, user);
  await t.rejects(gateway.call('ACL', 'LIST'), /NOPERM/, 'a gateway changes no password');
  await t.rejects(admin.incrby('longshore:x', 1), /NOPERM/, 'and the admin is no gateway');

  t.same(typed, ['ACL SETUSER gateway >NEW', 'ACL SAVE', 'ACL SETUSER gateway <OLD', 'ACL SAVE']);
  const type = async (line: string): Promise<void> => {
    const [command = '', ...words] = line.replace('<OLD', '<old').split(' ');
    t.equal(await admin.call(command, ...words), 'OK', line);
  };
  for (const line of typed.slice(0, 2)) await type(line);
  t.equal(await as(t, first.port, 'gateway', 'NEW').incrby('longshore:x', 1), 2);
  t.equal(
    await as(t, first.port, 'gateway', 'old').incrby('longshore:x', 1),
    3,
    'both, until all gateways have the new',
  );
  for (const line of typed.slice(2)) await type(line);
  await t.rejects(as(t, first.port, 'gateway', 'old').incrby('longshore:x', 1), /WRONGPASS/);
  t.equal(await gateway.incrby('longshore:x', 1), 4, 'connections of before go on');

  await first.stop();
  const second = await start();
  t.teardown(() => second.stop());
  t.equal(await as(t, second.port, 'gateway', 'NEW').incrby('longshore:x', 1), 1, 'also after a restart');
  await t.rejects(as(t, second.port, 'gateway', 'old').incrby('longshore:x', 1), /WRONGPASS/);
});

function as(t: Test, port: number, username: string, password: string): Redis {
  const options = { enableReadyCheck: false, maxRetriesPerRequest: 0, retryStrategy: () => null };
  const redis = new Redis({
    port,
    host: '127.0.0.1',
    username,
    password,
    disableClientInfo: true,
    protocol: 2,
    ...options,
  });
  redis.on('error', () => {});
  t.teardown(() => redis.disconnect());
  return redis;
}
