import t from 'tap';
import { createJudge } from '../../../host-agent/reconcile/judge.ts';
import { noOrphans, type OrphanState } from '../../../host-agent/workload/orphans.ts';
import type { Workload, WorkloadInput } from '../../../host-agent/workload/workload.ts';
import { quietLog } from '../../actors/support.ts';
import { id } from '../support/decisions.ts';

function start() {
  const inputs: WorkloadInput[] = [];
  const approved: OrphanState = { approved: new Set([id]), word: 1 };
  const changes: (readonly string[])[] = [];
  let stored = noOrphans;
  const workload: Partial<Workload> = {
    judge: (input) => {
      inputs.push(input);
      return { orphanState: approved, changed: [id] };
    },
    orphansHeld: () => 0,
  };
  const judge = createJudge({
    workload: workload as Workload,
    restartStore: { orphans: () => stored, setOrphans: (state) => void (stored = state) },
    present: { all: () => undefined },
    capacity: () => ({ cpu_millis: 1, mem_bytes: 1, containers: 1 }),
    onChanged: (ids) => void changes.push(ids),
    log: quietLog,
  });
  return { judge, inputs, changes, approved, stored: () => stored };
}

t.test('a judgement keeps the state of orphans and names the containers that it changes', (t) => {
  const { judge, inputs, changes, approved, stored } = start();
  judge.judge({}, 'any');
  t.match(inputs, [{ orphanWord: null, isSettled: false, isIsolated: false, orphanState: noOrphans }]);
  t.equal(stored(), approved);
  t.same(changes, [[id]]);
  judge.judge({ isSettled: true }, []);
  t.match(inputs[1], { isSettled: true, orphanState: approved });
  t.end();
});

t.test('new circumstances cause a judgement, known ones do not', (t) => {
  const { judge, inputs } = start();
  judge.set({ isIsolated: false });
  t.equal(inputs.length, 0);
  judge.set({ isIsolated: true });
  judge.set({ isIsolated: true });
  t.equal(inputs.length, 1);
  judge.set({ orphanWord: 4 });
  t.match(inputs[1], { orphanWord: 4, isIsolated: true });
  t.end();
});

t.test('a fenced host is isolated, whatever the silence of the control plane', (t) => {
  const { judge, inputs } = start();
  judge.set({ isFenced: true });
  t.ok(inputs.at(-1)?.isIsolated);
  judge.set({ isIsolated: true });
  judge.set({ isIsolated: false });
  t.ok(inputs.at(-1)?.isIsolated);
  judge.set({ isFenced: false });
  t.notOk(inputs.at(-1)?.isIsolated);
  t.end();
});
