/** An agent that is killed at each step of a start: the next one finishes it, and nothing leaks. */
import t, { type Test } from 'tap';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { labels, sandboxLabel } from '../../../../host-agent/docker/ownership.ts';
import type { EngineCall } from '../../../support/engine/api.ts';
import type { SimulatedContainer } from '../../../support/engine/model.ts';
import { until } from '../../../support/until.ts';
import { sandboxImage } from '../../../../host-agent/sandbox/image.ts';
import { startAgent } from '../../../host-agent/support/agent.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';

async function startGround(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-killed-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = await simulatedEngine(t);
  // So that the first create of a sandbox makes it.
  engine.model.pull(`${sandboxImage.repository}:${sandboxImage.tag}`);
  const env = { LONGSHORE_SANDBOX: 'on', LONGSHORE_SANDBOX_POOL: '0' };
  const agent = () => startAgent(t, { dockerHost: engine.host, stateDir: join(dir, 'agent'), controlPlane, env });
  return { controlPlane, engine, agent };
}

const isSandbox = (made: SimulatedContainer): boolean => sandboxLabel(made.labels) !== undefined;
const makes = ({ path, body }: EngineCall, name: string): boolean =>
  path === '/containers/create' && Buffer.from(body).includes(`"${name}"`);

/** Calls at which the agent is killed, before or after the engine has executed them. */
const steps: Readonly<Record<string, (call: EngineCall) => boolean>> = {
  'the create of its sandbox': (call) => makes(call, labels.sandbox),
  'the start of its sandbox': ({ path, container }) =>
    path.endsWith('/start') && container !== undefined && isSandbox(container),
  'the create of the container': (call) => makes(call, labels.container),
  'the start of the container': ({ path, container }) =>
    path.endsWith('/start') && container !== undefined && !isSandbox(container),
};

for (const [name, isStep] of Object.entries(steps)) {
  for (const verdict of ['cut', 'cut_after'] as const) {
    t.test(`killed ${verdict === 'cut' ? 'before' : 'after'} ${name}`, async (t) => {
      const { controlPlane, engine, agent } = await startGround(t);
      const { model } = engine;
      const first = agent();
      await first.logged('session_started');
      let isKilled = false;
      engine.intercept((call) => {
        if (isKilled || !isStep(call)) return undefined;
        isKilled = true;
        first.child.kill('SIGKILL');
        return verdict;
      });
      const { id } = controlPlane.desire({ registry: 'registry.example', repository: 'web', tag: '1', ports: [80] });
      await first.exited();
      t.ok(isKilled, 'it came to this step');
      engine.intercept(undefined);
      agent();
      await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
      await until(
        () => `one container and its sandbox: ${JSON.stringify([...model.containers.values()])}`,
        () => model.containers.size === 2,
      );
      const [container] = model.running();
      if (container === undefined) throw new Error('it does not run');
      t.match(model.sandboxOf(container)?.state, { status: 'running' });
      t.same(model.doubles, []);
      controlPlane.desire({ id, desired: 'removed' });
      await controlPlane.reported(id, ({ gone }) => gone);
      controlPlane.drop(id);
      await until('nothing is left', () => model.containers.size === 0);
    });
  }
}
