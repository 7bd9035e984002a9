import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { daemonSettings, optionOf, settingsOf } from '../../../host-agent/doctor/daemon.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('options of a command line', (t) => {
  const words = ['/usr/sbin/dockerd', '--data-root=/d', '--config-file', '/c', '--userland-proxy', '--debug'];
  t.same(
    ['data-root', 'config-file', 'userland-proxy', 'exec-root'].map((name) => optionOf(words, name)),
    ['/d', '/c', 'true', undefined],
  );
  t.end();
});

t.test('the command line, then the file, then the defaults of dockerd', (t) => {
  t.match(settingsOf(['dockerd'], {}, 'f'), { concurrentDownloads: 3, userlandProxy: true, source: 'f' });
  const file = { 'max-concurrent-downloads': 20, 'userland-proxy': false };
  t.match(settingsOf(['dockerd'], file, 'f'), { concurrentDownloads: 20, userlandProxy: false });
  const words = ['dockerd', '--max-concurrent-downloads=1024', '--userland-proxy=false'];
  t.match(settingsOf(words, {}, 'f'), { concurrentDownloads: 1024, userlandProxy: false });
  t.end();
});

t.test('the dockerd whose data it is, among others', async (t) => {
  const dir = temporaryFolder(t);
  const add = (pid: string, comm: string, ...words: string[]): void => {
    mkdirSync(join(dir, pid));
    writeFileSync(join(dir, pid, 'comm'), `${comm}\n`);
    writeFileSync(join(dir, pid, 'cmdline'), `${words.join('\0')}\0`);
  };
  const file = join(dir, 'daemon.json');
  const of = (rootDir: string) => daemonSettings(rootDir, { proc: dir, file });
  t.equal((await of('/var/lib/docker')).source, undefined, 'none runs here');

  add('1', 'init', 'init');
  add('10', 'dockerd', 'dockerd', '--data-root=/other', '--max-concurrent-downloads=7');
  t.equal((await of('/var/lib/docker')).source, undefined, 'only that of another folder');
  add('11', 'dockerd', 'dockerd', '-H', 'fd://');
  t.match(await of('/var/lib/docker'), { concurrentDownloads: 3, source: `there is no ${file}` });
  writeFileSync(file, '{"max-concurrent-downloads": 9, "log-level": "warn"}');
  t.match(await of('/var/lib/docker'), { concurrentDownloads: 9, source: file });
  t.match(await of('/other'), { concurrentDownloads: 7 });
  writeFileSync(file, 'damaged');
  t.match(await of('/var/lib/docker'), { concurrentDownloads: 3, source: `${file} cannot be read` });
});
