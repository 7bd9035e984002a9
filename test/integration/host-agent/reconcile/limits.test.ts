/** Limits that were changed by hand (`docker update`), on a simulated and on a real engine. */
import t from 'tap';
import { join } from 'node:path';
import { startAgent, type AgentProcess } from '../../../host-agent/support/agent.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';

const MiB = 1024 * 1024;
const declared = { Memory: 64 * MiB, NanoCpus: 500_000_000 };
const changes = [
  { Memory: 16 * MiB },
  { Memory: 128 * MiB, MemorySwap: 128 * MiB },
  { NanoCpus: 100_000_000 },
] as const;

const isRunning = ({ observation }: { observation: { status: string } }): boolean => observation.status === 'running';
const areDeclared = ({ Memory, NanoCpus }: { readonly Memory?: unknown; readonly NanoCpus?: unknown }): boolean =>
  Memory === declared.Memory && NanoCpus === declared.NanoCpus;
const timesSet = ({ lines }: AgentProcess): number =>
  lines.filter(({ event, step, result }) => event === 'step_taken' && step === 'limit' && result === 'done').length;

t.test('a simulated engine', async (t) => {
  const dir = temporaryFolder(t);
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const { model, host, calls } = await simulatedEngine(t);
  const agent = startAgent(t, { dockerHost: host, stateDir: join(dir, 'agent'), controlPlane });
  const { id } = controlPlane.desire({ registry: 'registry.example', repository: 'web', tag: '1' });
  await controlPlane.reported(id, isRunning);
  const [made] = model.running();
  if (made === undefined) throw new Error('it does not run');
  for (const [before, change] of changes.entries()) {
    model.update(made, change);
    await until('its limits are set', () => timesSet(agent) === before + 1);
    t.ok(areDeclared(made.limits ?? {}));
  }
  t.equal(calls().filter(({ path }) => path.endsWith('/update')).length, changes.length, 'no call for nothing');
  t.same(model.running(), [made], 'it runs on');
});

t.test('a real engine', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const process = agent();
  const { id } = controlPlane.desire(await script('steady', steady));
  await controlPlane.reported(id, isRunning);
  const before = await engine.only(id);
  t.match(before.HostConfig, declared);
  for (const [times, change] of changes.entries()) {
    const { status, text } = await engine.call('POST', `/containers/${before.Id}/update`, change);
    t.equal(status, 200, text);
    await until('its limits are set', () => timesSet(process) === times + 1);
    const after = await engine.only(id);
    t.ok(areDeclared(after.HostConfig));
    t.match(after, { Id: before.Id, State: { Running: true, StartedAt: before.State.StartedAt } }, 'it runs on');
  }
  t.equal(controlPlane.last(id)?.observation.status, 'running');
});
