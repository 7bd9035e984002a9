import t, { type Test } from 'tap';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keptPorts, type Ports } from '../../../dev/stack/ports.ts';
import { isFree } from '../../../dev/process/process.ts';
import { hasNameLocks } from '../../../lib/process/name-lock.ts';
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

/** Chooses ports in a process of its own, which has them until the test ends. */
async function choosePorts(t: Test, file: string): Promise<Ports> {
  const module = JSON.stringify(new URL('../../../dev/stack/ports.js', import.meta.url).href);
  const program = `import { keptPorts } from ${module};
    console.log(JSON.stringify(await keptPorts(${JSON.stringify(file)})));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return JSON.parse(line.toString()) as Ports;
}

t.test('two starts at one moment choose different ports', { skip: !hasNameLocks && 'Linux alone' }, async (t) => {
  const files = ['one', 'other'].map((name) => join(temporaryFolder(t), name));
  const first = await keptPorts(join(temporaryFolder(t), 'ports.json'));
  const wanted = Object.fromEntries(Object.keys(first).map((name, index) => [name, first.nats + index + 1]));
  for (const file of files) writeFileSync(file, JSON.stringify(wanted));
  const chosen = await Promise.all(files.map((file) => choosePorts(t, file)));
  const all = chosen.flatMap((ports) => Object.values(ports));
  t.equal(new Set(all).size, all.length);
});

t.test('a damaged file counts as none', async (t) => {
  const file = join(temporaryFolder(t), 'ports.json');
  for (const damaged of ['', '{"nats":', '{"nats":"4222"}', '{"nats":70000}', '{"nats":20001,"redis":20001}']) {
    writeFileSync(file, damaged);
    const ports = await keptPorts(file);
    t.ok(ports.nats > 0 && ports.nats < 65_536 && ports.nats !== ports.redis, damaged);
  }
});
