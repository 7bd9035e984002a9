/** Limits that were changed by hand (`docker update`), on a simulated and on a real engine. */
import t from 'tap';
import { join } from 'node:path';
import { startAgent, type AgentProcess } from '../../../host-agent/support/agent.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';
import { limits } from '../../../../schemas/limits.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';

const MiB = 1024 * 1024;
const declared = { Memory: 64 * MiB, MemorySwap: 64 * MiB, NanoCpus: 500_000_000, PidsLimit: limits.containerPids };
const changes = [
  { Memory: 16 * MiB },
  { Memory: 128 * MiB, MemorySwap: 128 * MiB },
  { MemorySwap: -1 },
  { NanoCpus: 100_000_000 },
  { PidsLimit: 5 },
  { PidsLimit: 0 },
  { CpuShares: 2 },
  { CpusetCpus: '0' },
  { RestartPolicy: { Name: 'always' } },
] as const;

const isRunning = ({ observation }: { observation: { status: string } }): boolean => observation.status === 'running';
/** An engine has no way back from other shares or CPUs than to name its default. */
const defaults = { CpuShares: [0, 1024], CpusetCpus: ['', undefined], restart: ['', 'no'] };
function areDeclared(config: Readonly<Record<string, unknown>>, cores: number): boolean {
  const { CpuShares = 0, CpusetCpus, RestartPolicy } = config;
  const { Name: restart = 'no' } = (RestartPolicy ?? {}) as { Name?: string };
  return (
    Object.entries(declared).every(([name, value]) => config[name] === value) &&
    defaults.CpuShares.includes(CpuShares as number) &&
    [...defaults.CpusetCpus, cores === 1 ? '0' : `0-${cores - 1}`].includes(CpusetCpus as string) &&
    defaults.restart.includes(restart)
  );
}
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
    t.ok(areDeclared({ ...made.limits }, 64), JSON.stringify([change, made.limits]));
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
  const { NCPU: cores } = JSON.parse((await engine.call('GET', '/info')).text) as { NCPU: number };
  for (const [times, change] of changes.entries()) {
    const { status, text } = await engine.call('POST', `/containers/${before.Id}/update`, change);
    t.equal(status, 200, text);
    await until('its limits are set', () => timesSet(process) === times + 1);
    const after = await engine.only(id);
    t.ok(areDeclared(after.HostConfig, cores), JSON.stringify([change, after.HostConfig]));
    t.match(after, { Id: before.Id, State: { Running: true, StartedAt: before.State.StartedAt } }, 'it runs on');
  }
  t.equal(controlPlane.last(id)?.observation.status, 'running');
});
