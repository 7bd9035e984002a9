/** Many starts at once, on a simulated engine, while no sandbox waits ready. */
import t from 'tap';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sandboxLabel } from '../../../../host-agent/docker/ownership.ts';
import { until } from '../../../support/until.ts';
import { startAgent } from '../../../host-agent/support/agent.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';
import { concurrentSandboxes } from '../../../../host-agent/sandbox/sandboxes.ts';

const env = {
  ...{ LONGSHORE_SANDBOX: 'on', LONGSHORE_SANDBOX_POOL: '0' },
  ...{ CAPACITY_CPU_MILLIS: '1000000', CAPACITY_MEM_BYTES: String(2 ** 40) },
};

t.test('200 starts at once, with nothing ready', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-many-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = await simulatedEngine(t);
  const { model } = engine;
  let under = 0;
  let most = 0;
  engine.intercept(async ({ path, container }, response) => {
    if (!path.endsWith('/start') || sandboxLabel(container?.labels) === undefined) return undefined;
    response.once('close', () => (under -= 1));
    most = Math.max(most, (under += 1));
    await new Promise(setImmediate);
    return undefined;
  });
  startAgent(t, { dockerHost: engine.host, stateDir: join(dir, 'agent'), controlPlane, env });
  const declared = controlPlane.desireAll(
    Array.from({ length: 200 }, (_, index) => ({
      tenant: `t${index % 50}`,
      registry: 'registry.example',
      repository: 'web',
      tag: '1',
      ports: index % 2 === 0 ? [80, '53/udp'] : [],
    })),
  );
  for (const { id } of declared) await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  const sandboxes = new Set(model.running().map((each) => model.sandboxOf(each)?.id));
  t.equal(sandboxes.size, 200, 'each has a sandbox of its own');
  await until('no others', () => model.containers.size === 400);
  const published = [...model.containers.values()].flatMap((each) => Object.values(each.published ?? {}).flat());
  t.equal(new Set(published.map(({ HostPort }) => HostPort)).size, 200, 'no port of the host twice');
  t.ok(most <= concurrentSandboxes, `${most} sandboxes were started at a time`);
});
