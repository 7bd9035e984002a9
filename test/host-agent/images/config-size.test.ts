import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { configBytes } from '../../../host-agent/images/config-size.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('the size of an image’s configuration, where the engine’s disk is to be seen', async (t) => {
  const root = temporaryFolder(t);
  const hex = 'a'.repeat(64);
  t.equal(await configBytes(root, `sha256:${hex}`), undefined, 'images are elsewhere');
  for (const driver of ['btrfs', 'overlay2'])
    mkdirSync(join(root, 'image', driver, 'imagedb', 'content', 'sha256'), { recursive: true });
  writeFileSync(join(root, 'image', 'overlay2', 'imagedb', 'content', 'sha256', hex), 'x'.repeat(77));
  t.equal(await configBytes(root, `sha256:${hex}`), 77);
  t.equal(await configBytes(root, `sha256:${'b'.repeat(64)}`), undefined);
  t.equal(await configBytes(undefined, `sha256:${hex}`), undefined);
  t.equal(await configBytes(root, 'sha256:../../x'), undefined);
});
