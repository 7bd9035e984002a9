import t from 'tap';
import { usesWith } from '../../../cli/tenant/uses.ts';

const stored = {
  env: { DB: 'db-password' },
  files: { '/run/key': { secret: 'key', mode: 0o440, uid: 7, gid: 7 } },
};

t.test('secrets of a container that there is: added, replaced, removed', (t) => {
  t.same(usesWith({ secret: ['API=token'] }, stored), { ...stored, env: { DB: 'db-password', API: 'token' } });
  t.same(usesWith({ secretFile: ['/run/key=new-key'] }, stored), {
    ...stored,
    files: { '/run/key': { secret: 'new-key', mode: 0o440, uid: 7, gid: 7 } },
  });
  t.same(usesWith({ secret: ['DB=other'], unset: ['/run/key'] }, stored), { env: { DB: 'other' }, files: {} });
  t.same(usesWith({ unset: ['DB', '/run/key'] }, stored), { env: {}, files: {} });
  t.end();
});

t.test('options that change none', (t) => {
  t.same(usesWith({}, {}), { env: {}, files: {} });
  t.same(usesWith({ secret: ['DB=db-password'], unset: ['GREETING'] }, stored), stored);
  t.end();
});

t.test('a use is a variable or an absolute path, and a name', (t) => {
  t.throws(() => usesWith({ secret: ['DB'] }, {}), {
    name: 'WrongUsage',
    message: '--secret DB: it must be NAME=secret',
  });
  t.throws(() => usesWith({ secretFile: ['/run/key='] }, {}), {
    name: 'WrongUsage',
    message: '--secret-file /run/key=: it must be /path=secret',
  });
  t.end();
});
