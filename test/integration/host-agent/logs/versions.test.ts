/**
 * The log of a container over its versions (ADR 35): each line once and in order, whichever copy it
 * came from, also when the agent is killed in between.
 */
import t, { type Test } from 'tap';
import type { LogEntry } from '../../../../schemas/api/log.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import type { ControlPlane } from '../../../host-agent/support/control-plane.ts';
import { startRig } from '../../../host-agent/support/rig.ts';
import { asRead, conflicts, linesOf } from './captured.ts';

t.setTimeout(240_000);

/** Names its run in each line, and says when it is asked to stop. */
const counting = [
  `run=$VERSION-$(head -c 4 /dev/urandom | od -An -tx1 | tr -d ' ')`,
  `trap 'echo "$run bye"; exit 0' TERM`,
  `n=0; while :; do n=$((n+1)); echo "$run $n"; sleep 0.2 & wait $!; done`,
].join('; ');

/** The lines of each run, in the order of the runs. */
function runsIn(lines: readonly LogEntry[]): Map<string, string[]> {
  const runs = new Map<string, string[]>();
  for (const { line } of lines) {
    const [run = '', said = ''] = line.split(' ');
    runs.set(run, [...(runs.get(run) ?? []), said]);
  }
  return runs;
}

/** Waits for lines of so many runs of a version. */
const sayingOf =
  (controlPlane: ControlPlane, id: ContainerId) =>
  (version: string, runs = 1) =>
    linesOf(
      controlPlane,
      id,
      (read) => [...runsIn(read)].filter(([run, said]) => run.startsWith(version) && said.length > 3).length >= runs,
    );

/** Each line of these runs came once and in order; those of crashes are left out. */
function isWhole(t: Test, captured: readonly LogEntry[], versions: readonly string[]): void {
  t.same(conflicts(captured), []);
  const runs = [...runsIn(asRead(captured).filter(({ line }) => !line.startsWith('crash')))];
  for (const [run, said] of runs) {
    const numbers = said.filter((word) => word !== 'bye');
    t.same(
      numbers,
      Array.from({ length: numbers.length }, (_, index) => String(index + 1)),
      run,
    );
    const isLast = run === runs.at(-1)?.[0];
    t.equal(said.at(-1) === 'bye', !isLast, `${run} said that it stops, if it did`);
  }
  t.same(
    runs.map(([run]) => run.split('-')[0]),
    versions,
  );
}

t.test('each line of each version comes once, in order', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  const env = { UPDATE_VERIFY: '1500ms' };
  let process = agent(env);
  const image = await script('counting-versions', counting);
  const { id } = controlPlane.desire({ ...image, env: { VERSION: 'one' } });
  const says = sayingOf(controlPlane, id);
  await says('one');

  const second = controlPlane.update(id, { ...image, env: { VERSION: 'two' } });
  await says('two');
  await process.kill9();
  process = agent(env);
  await controlPlane.reported(id, (item) => item.generation === second.generation && item.update?.phase === 'done');
  controlPlane.settle(id);

  await controlPlane.reported(id, ({ update }) => update === undefined);
  const third = controlPlane.update(id, { ...image, env: { VERSION: 'three' } });
  await says('three');
  const fourth = controlPlane.update(id, { ...(await script('crashing', 'echo "crash 1"; exit 3')) });
  await controlPlane.reported(
    id,
    (item) => item.generation === fourth.generation && item.update?.phase === 'rolled_back',
  );
  t.ok(third.generation < fourth.generation);
  controlPlane.settle(id);
  const captured = await says('two', 2);
  await process.stop();

  isWhole(t, captured, ['one', 'two', 'three', 'two']);
});

t.test('updates of which each replaces the last one before its end, and a roll back behind them', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  const process = agent({ UPDATE_VERIFY: '10m' });
  const image = await script('counting-versions', counting);
  const { id } = controlPlane.desire({ ...image, env: { VERSION: 'zero' } });
  const says = sayingOf(controlPlane, id);
  await says('zero');
  const replaced = ['one', 'two', 'three', 'four', 'five'];
  for (const version of replaced) {
    controlPlane.update(id, { ...image, env: { VERSION: version } });
    await says(version);
  }
  controlPlane.update(id, { ...(await script('crashing', 'echo "crash 1"; exit 3')) });
  await controlPlane.reported(id, ({ update }) => update?.phase === 'rolled_back');
  const captured = await says('zero', 2);
  await process.stop();
  isWhole(t, captured, ['zero', ...replaced, 'zero']);
});
