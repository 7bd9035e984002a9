import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { resolveSecrets } from '../../../host-agent/spec/secrets.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('secrets of the host become variables, whatever their names', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'db'), 'hunter2\n');
  const resolved = await resolveSecrets(folder, [
    { env: 'PASSWORD', secret: 'db' },
    { env: '__proto__', secret: 'db' },
  ]);
  t.same('env' in resolved && Object.entries(resolved.env), [
    ['PASSWORD', 'hunter2'],
    ['__proto__', 'hunter2'],
  ]);
  t.same(await resolveSecrets(folder, [{ env: 'A', secret: 'nowhere' }]), { kind: 'missing', secret: 'nowhere' });
  t.same(await resolveSecrets(undefined, [{ env: 'A', secret: 'db' }]), { kind: 'missing', secret: 'db' });
});
