/**
 * Lines are sent exactly once while the engine rotates its files: under a reader that keeps up, one
 * that is killed, and one that comes back after the files that it read are gone.
 */
import t from 'tap';
import { asRead, conflicts, counting, has, linesOf } from './captured.ts';
import { startRig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

const deadlineMs = 120_000;
const unlimited = { LOG_RATE_CONTAINER_BYTES: 'off', LOG_RATE_TENANT_BYTES: 'off', LOG_RATE_HOST_BYTES: 'off' };
const padding = 'x'.repeat(80);
const staying = `trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done`;

/** Each number from 1 to `total` on a line; in the engine's file, a line takes about 160 bytes. */
const numbers = (total: number): string => `seq 1 ${total} | sed 's/^/${padding} /'`;

t.test('every line is told once while the engine rotates and the agent is killed', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  // About 24 MB: two rotations, and none that takes a file away before it was read.
  const total = 150_000;
  const image = await script('rotating', `${numbers(total)}; echo done; ${staying}`);
  let process = agent(unlimited);
  const { id } = controlPlane.desire(image);
  for (const enough of [2_000, 60_000]) {
    await linesOf(controlPlane, id, ({ length }) => length >= enough, deadlineMs);
    await process.kill9();
    process = agent(unlimited);
  }
  const captured = await linesOf(controlPlane, id, has('done'), deadlineMs);
  const read = asRead(captured);
  t.same(conflicts(captured), []);
  const told = counting(read, `${padding} `);
  t.equal(told.length, total);
  t.ok(told.every((number, index) => number === index + 1));
});

t.test('a reader that stood still while the engine rotated twice continues where it was', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const total = 150_000;
  const wait = `trap 'go=1' USR1; echo ready; while [ -z "$go" ]; do sleep 1 & wait $!; done`;
  const image = await script('standing', `${wait}; ${numbers(total)}; echo done; ${staying}`);
  const process = agent(unlimited);
  const { id } = controlPlane.desire(image);
  await linesOf(controlPlane, id, has('ready'));
  const { Id } = await engine.only(id);
  process.child.kill('SIGSTOP');
  await engine.call('POST', `/containers/${Id}/kill?signal=USR1`);
  await until(
    'the last line in the engine’s files',
    async () => (await engine.call('GET', `/containers/${Id}/logs?stdout=1&tail=1`)).text.includes('done'),
    undefined,
    deadlineMs,
  );
  process.child.kill('SIGCONT');
  const captured = await linesOf(controlPlane, id, has('done'), deadlineMs);
  t.same(conflicts(captured), []);
  const told = counting(asRead(captured), `${padding} `);
  t.equal(told.length, total);
  t.ok(told.every((number, index) => number === index + 1));
});
