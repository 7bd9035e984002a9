import t from 'tap';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keptPorts } from '../../../dev/stack/ports.ts';
import { isFree } from '../../../dev/process/process.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('ports stay the same between starts; one that is in use is replaced for good', async (t) => {
  const file = join(temporaryFolder(t), 'ports.json');
  const first = await keptPorts(file);
  t.equal(new Set(Object.values(first)).size, Object.keys(first).length, 'all differ');
  t.same(await keptPorts(file), first);

  const other = createServer().listen(first.registry, '127.0.0.1');
  t.teardown(() => other.close());
  await once(other, 'listening');
  t.notOk(await isFree(first.registry));
  const second = await keptPorts(file);
  t.not(second.registry, first.registry);
  t.same({ ...second, registry: first.registry }, first, 'the other ports are unchanged');
  t.same(await keptPorts(file), second);
});

t.test('a damaged file counts as none', async (t) => {
  const file = join(temporaryFolder(t), 'ports.json');
  for (const damaged of ['', '{"nats":', '{"nats":"4222"}', '{"nats":70000}']) {
    writeFileSync(file, damaged);
    const ports = await keptPorts(file);
    t.ok(ports.nats > 0 && ports.nats < 65_536, damaged);
  }
});
