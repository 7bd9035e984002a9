/** Which processes are signalled, on a `/proc` that the test writes. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { below, createProcessTree, parentIn } from '../../../host-agent/sessions/process-tree.ts';
import { temporaryFolder } from '../../support/folder.ts';

const ours = 'a'.repeat(64);
const other = 'b'.repeat(64);

function machine(t: Test, processes: Record<number, { readonly parent: number; readonly of?: string }>) {
  const folder = temporaryFolder(t);
  const sent: string[] = [];
  const add = (pid: number, parent: number, of = ours): void => {
    mkdirSync(join(folder, String(pid)));
    writeFileSync(join(folder, String(pid), 'stat'), `${pid} (a) b (c) S ${parent} 1 1 0`);
    writeFileSync(join(folder, String(pid), 'cgroup'), `0::/docker/${of}\n`);
  };
  for (const [pid, { parent, of }] of Object.entries(processes)) add(Number(pid), parent, of);
  mkdirSync(join(folder, 'net'));
  const tree = createProcessTree({
    folder,
    send: (pid, signal) => {
      sent.push(`${pid} ${signal}`);
      // It starts another just before it is stopped.
      if (pid === 20 && signal === 'SIGSTOP') add(30, 20);
      if (pid === 21 && signal === 'SIGSTOP') {
        rmSync(join(folder, '21'), { recursive: true });
        throw Object.assign(new Error('gone'), { code: 'ESRCH' });
      }
    },
  });
  return { tree, sent };
}

t.test('a process and all below it are stopped, and then killed', async (t) => {
  const { tree, sent } = machine(t, {
    1: { parent: 0, of: other },
    10: { parent: 1 },
    20: { parent: 10 },
    21: { parent: 10 },
    40: { parent: 1 },
  });
  await tree.kill(10, ours);
  t.same(sent.slice(0, 4), ['10 SIGSTOP', '20 SIGSTOP', '21 SIGSTOP', '30 SIGSTOP']);
  t.same(sent.slice(4).sort(), ['10 SIGKILL', '20 SIGKILL', '30 SIGKILL']);
});

t.test('a process of another container, or of none, is never touched', async (t) => {
  const { tree, sent } = machine(t, { 10: { parent: 1, of: other }, 11: { parent: 10 } });
  await t.rejects(tree.kill(10, ours), /not one of the container/);
  await t.rejects(tree.signal(10, ours, 'SIGINT'), /not one of the container/);
  await t.rejects(tree.signal(99, ours, 'SIGINT'), /not one of the container/);
  t.same(sent, []);
  await tree.signal(11, ours, 'SIGINT');
  t.same(sent, ['11 SIGINT']);
});

t.test('a child in another container is not killed with its parent', async (t) => {
  const { tree, sent } = machine(t, { 10: { parent: 1 }, 11: { parent: 10, of: other } });
  await tree.kill(10, ours);
  t.same(sent, ['10 SIGSTOP', '10 SIGKILL']);
});

t.test('the parent of a process with an odd name', (t) => {
  t.equal(parentIn('12 (x) 7 (y) S 34 12 12'), 34);
  t.equal(parentIn(''), undefined);
  t.same(
    [
      ...below(
        1,
        new Map([
          [3, 2],
          [2, 1],
          [9, 8],
        ]),
      ),
    ].sort(),
    [1, 2, 3],
  );
  t.end();
});
