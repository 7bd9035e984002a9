import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { hasSandboxProgram, sandboxElf, sandboxTar } from '../../../host-agent/sandbox/image.ts';

const here = { x64: 'x86_64', arm64: 'aarch64' }[process.arch as string];

t.test('the program waits until it is killed', { skip: here === undefined }, async (t) => {
  const path = join(t.testdir({}), 'pause');
  writeFileSync(path, sandboxElf(here ?? ''), { mode: 0o755 });
  const child = spawn(path, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  t.equal(await Promise.race([ended.then(() => 'it ended'), sleep(300, 'it waits')]), 'it waits');
  child.kill('SIGKILL');
  t.same(await ended, [null, 'SIGKILL']);
});

t.test('an executable for each machine, of a few hundred bytes', (t) => {
  for (const [architecture, machine] of [
    ['x86_64', 62],
    ['aarch64', 183],
  ] as const) {
    const elf = sandboxElf(architecture);
    t.equal(elf.readUInt16LE(18), machine);
    t.equal(elf.readBigUInt64LE(24), 0x400000n + 120n, 'it begins behind the headers');
    t.equal(elf.readBigUInt64LE(64 + 32), BigInt(elf.length), 'all of it is loaded');
    t.ok(elf.length < 300);
    t.ok(hasSandboxProgram(architecture));
  }
  t.throws(() => sandboxElf('riscv64'), /no sandbox for the architecture riscv64/);
  t.notOk(hasSandboxProgram('riscv64'));
  t.end();
});

t.test('the image has the program alone', async (t) => {
  const path = join(t.testdir({}), 'image.tar');
  writeFileSync(path, await sandboxTar('x86_64'));
  t.match(execFileSync('tar', ['-tvf', path], { encoding: 'utf8' }), /^-r-xr-xr-x .* pause\n$/);
});
