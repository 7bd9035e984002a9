/** Signals to processes, on a `/proc` that the test writes. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  below,
  childrenIn,
  createProcessTree,
  parentIn,
  killLooks,
} from '../../../host-agent/sessions/process-tree.ts';
import { temporaryFolder } from '../../support/folder.ts';

const ours = 'a'.repeat(64);
const other = 'b'.repeat(64);

function machine(t: Test, processes: Record<number, { readonly parent: number; readonly of?: string }>) {
  const folder = temporaryFolder(t);
  const sent: string[] = [];
  let walks = 0;
  const add = (pid: number, parent: number, of = ours): void => {
    mkdirSync(join(folder, String(pid)));
    writeFileSync(join(folder, String(pid), 'stat'), `${pid} (a) b (c) S ${parent} 1 1 0`);
    writeFileSync(join(folder, String(pid), 'cgroup'), `0::/docker/${of}\n`);
  };
  for (const [pid, { parent, of }] of Object.entries(processes)) add(Number(pid), parent, of);
  mkdirSync(join(folder, 'net'));
  const tree = createProcessTree({
    folder,
    list: (path) => {
      walks++;
      return readdir(path);
    },
    send: (pid, signal) => {
      sent.push(`${pid} ${signal}`);
      if (pid === 50) throw Object.assign(new Error('not permitted'), { code: 'EPERM' });
      // It starts another just before it is stopped.
      if (pid === 20 && signal === 'SIGSTOP') add(30, 20);
      if (pid === 21 && signal === 'SIGSTOP') {
        rmSync(join(folder, '21'), { recursive: true });
        throw Object.assign(new Error('gone'), { code: 'ESRCH' });
      }
    },
  });
  return { tree, sent, walks: () => walks };
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

t.test('one walk over the processes serves all kills that wait', async (t) => {
  const count = 100;
  const processes: Record<number, { readonly parent: number; readonly of?: string }> = { 1: { parent: 0, of: other } };
  for (let each = 0; each < count; each++) {
    processes[1000 + each] = { parent: 1 };
    processes[3000 + each] = { parent: 1000 + each };
  }
  const { tree, sent, walks } = machine(t, processes);
  await Promise.all(Array.from({ length: count }, (_, each) => tree.kill(1000 + each, ours)));
  t.equal(sent.filter((each) => each.endsWith('SIGKILL')).length, 2 * count, 'all are killed');
  t.equal(sent.filter((each) => each.endsWith('SIGSTOP')).length, 2 * count, 'each once');
  t.ok(walks() <= killLooks, `${walks()} walks for ${count} kills`);
  await tree.kill(1000, ours);
  t.ok(sent.includes('1000 SIGKILL'), 'and later ones get walks of their own');
});

t.test('a kill that fails fails alone', async (t) => {
  const { tree, sent } = machine(t, { 10: { parent: 1 }, 50: { parent: 10 }, 12: { parent: 1 } });
  const [failed, killed] = await Promise.allSettled([tree.kill(10, ours), tree.kill(12, ours)]);
  t.equal(failed.status, 'rejected');
  t.equal(killed.status, 'fulfilled');
  t.ok(sent.includes('12 SIGKILL'));
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
        childrenIn(
          new Map([
            [3, 2],
            [2, 1],
            [9, 8],
          ]),
        ),
      ),
    ].sort(),
    [1, 2, 3],
  );
  t.end();
});
