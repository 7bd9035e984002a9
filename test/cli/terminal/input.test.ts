import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readFile } from '../../../cli/terminal/input.ts';
import { limits } from '../../../schemas/limits.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('a file, or why it can not be read, in words', (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'web.env');
  writeFileSync(path, 'A=1');
  t.equal(readFile(path).toString(), 'A=1');
  const none = join(folder, 'none');
  t.throws(() => readFile(none), { name: 'Refused', message: `${none} can't be read: no such file or directory` });
  t.throws(() => readFile(folder), {
    name: 'Refused',
    message: `${folder} can't be read: illegal operation on a directory`,
  });
  truncateSync(path, limits.cliInputBytes + 1);
  t.throws(() => readFile(path), { name: 'Refused', message: `${path} is larger than ${limits.cliInputBytes} bytes` });
  t.end();
});
