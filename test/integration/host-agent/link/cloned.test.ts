/** The state folder of an agent is copied to a second machine. */
import t from 'tap';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../../lib/time/clock.ts';
import { lockHost } from '../../../../host-agent/lock.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { host } from '../../../host-agent/support/control-plane-state.ts';
import { simulatedEngine, statusesOn } from '../../../host-agent/support/simulated-engine.ts';
import type { SimulatedEngine } from '../../../support/engine/server.ts';
import { startLocalAgent } from '../../../host-agent/support/in-process.ts';
import { until } from '../../../support/until.ts';

t.test(
  'two agents with one state folder: the later one works, the earlier one stops and removes nothing',
  async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'longshore-cloned-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const controlPlane = await startControlPlane(t, join(dir, 'nats'));
    const [first, second] = [await simulatedEngine(t), await simulatedEngine(t)];
    const start = (stateDir: string, engine: SimulatedEngine) =>
      startLocalAgent(t, { dockerHost: engine.host, stateDir, controlPlane, clock: systemClock });
    const errors = ({ entries }: Awaited<ReturnType<typeof start>>) =>
      entries.filter(({ level }) => level === 'error').map(({ event, kind }) => [event, kind]);

    const original = await start(join(dir, 'a'), first);
    const { id } = controlPlane.desire({ registry: 'registry.example', repository: 'web' });
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
    await until('a session', () => original.entries.some(({ event }) => event === 'session_started'));
    cpSync(join(dir, 'a'), join(dir, 'b'), { recursive: true });
    const clone = await start(join(dir, 'b'), second);

    await until(
      () => `one that runs, not ${statusesOn(first).join()} and ${statusesOn(second).join()}`,
      () => statusesOn(first)[0] === 'exited' && statusesOn(second)[0] === 'running',
    );
    t.same(errors(original), [['host_fault_raised', 'cloned_state']], 'logged once, by the agent that stopped');
    t.same(errors(clone), []);
    const hellos = controlPlane.hellos().length;
    const beats = controlPlane.beats().length;
    await until(
      'more heartbeats, and another attempt of the one that stopped',
      () => controlPlane.beats().length > beats + 20 && controlPlane.hellos().length > hellos,
    );
    t.same([statusesOn(first), statusesOn(second)], [['exited'], ['running']], 'the agents do not fight');
    t.equal(
      clone.entries.filter(({ event }) => event === 'session_started').length,
      1,
      'the session stays with the clone',
    );

    await clone.stop();
    await until('the first takes up its work when the other is silent', () => statusesOn(first)[0] === 'running');
    t.ok(original.entries.some(({ event, kind }) => event === 'host_fault_cleared' && kind === 'cloned_state'));
    await original.stop();
  },
);

t.test('one machine runs one agent of a host', async (t) => {
  const owner = { cluster: `cluster of ${process.pid}`, host };
  const held = await lockHost(owner);
  if (process.platform === 'linux') await t.rejects(lockHost(owner), /another agent runs as host h1/);
  await held.stop();
  await (await lockHost(owner)).stop();
});
