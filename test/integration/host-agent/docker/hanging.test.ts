/** The agent with an engine that hangs on some calls or fails one: the others continue. */
import t, { type Test } from 'tap';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { limits } from '../../../../schemas/limits.ts';
import { startAgent } from '../../../host-agent/support/agent.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import type { Desire } from '../../../host-agent/support/control-plane-state.ts';
import { until } from '../../../support/until.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';
import { refusal, type SimulatedContainer } from '../../../support/engine/model.ts';
import { labels } from '../../../../host-agent/docker/ownership.ts';

async function startGround(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-hanging-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = await simulatedEngine(t);
  const agent = startAgent(t, { dockerHost: engine.host, stateDir: join(dir, 'agent'), controlPlane });
  return { controlPlane, engine, agent };
}

const image = (tenant: string, registry = 'registry.example'): Desire => ({
  tenant,
  registry,
  repository: 'web',
  tag: tenant,
  cpu_millis: 10,
});
const isStuck = (container: SimulatedContainer | undefined): boolean =>
  container?.labels[labels.tenant]?.startsWith('stuck') === true;
const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';

t.test('as many hanging calls as there are workers delay no other container', async (t) => {
  const { controlPlane, engine, agent } = await startGround(t);
  engine.intercept(({ path, container }) => (path.endsWith('/start') && isStuck(container) ? 'hang' : undefined));
  const stuck = Array.from({ length: limits.concurrentSteps }, (_, index) => image(`stuck-${index}`));
  controlPlane.desireAll(stuck);
  await until(
    () => `${stuck.length} hanging starts, not ${engine.hanging().length}`,
    () => engine.hanging().length === stuck.length,
  );
  const { id } = controlPlane.desire(image('well'));
  await controlPlane.reported(id, isRunning);
  t.equal(engine.hanging().length, stuck.length, 'while all of them hang');
  t.equal(engine.givenUp().length, 0, 'before any of them has timed out');
  const startsOf = ({ id: dockerId }: SimulatedContainer) =>
    engine.calls().filter(({ path }) => path.endsWith(`/${dockerId}/start`)).length;
  t.same([...new Set(engine.model.ofTenants().map(startsOf))], [1], 'none was repeated');
  await agent.kill9();
});

t.test('as many hanging stops as there are places delay no other stop', async (t) => {
  const { controlPlane, engine, agent } = await startGround(t);
  const stuck = controlPlane.desireAll(
    Array.from({ length: limits.concurrentStops }, (_, index) => image(`stuck-${index}`)),
  );
  const well = controlPlane.desire(image('well'));
  for (const { id } of [...stuck, well]) await controlPlane.reported(id, isRunning);
  engine.intercept(({ path, container }) => (path.endsWith('/stop') && isStuck(container) ? 'hang' : undefined));
  controlPlane.desireAll(stuck.map(({ id, tenant }) => ({ ...image(tenant), id, desired: 'stopped' as const })));
  await until(
    () => `${stuck.length} hanging stops, not ${engine.hanging().length}`,
    () => engine.hanging().length === stuck.length,
  );
  controlPlane.desire({ ...image('well'), id: well.id, desired: 'stopped' });
  await controlPlane.reported(well.id, ({ observation }) => observation.status === 'stopped');
  t.equal(engine.hanging().length, stuck.length, 'while all of them hang');
  t.equal(engine.givenUp().length, 0, 'before any of them has timed out');
  await agent.kill9();
});

t.test('a registry that sends nothing delays only the pulls of its tenant', async (t) => {
  const { controlPlane, engine, agent } = await startGround(t);
  const isStalled = (reference: string): boolean => reference.startsWith('stalled.example/');
  engine.intercept(({ path, query }) =>
    path === '/images/create' && isStalled(query.get('fromImage') ?? '') ? 'hang' : undefined,
  );
  const tags = Array.from({ length: 2 * limits.concurrentPulls }, (_, index) => `v${index}`);
  controlPlane.desireAll(tags.map((tag) => ({ ...image('slow', 'stalled.example'), tag })));
  await until(
    () => `${limits.pullsPerTenant} hanging pulls, not ${engine.hanging().length}`,
    () => engine.hanging().length === limits.pullsPerTenant,
  );
  const { id } = controlPlane.desire(image('well'));
  await controlPlane.reported(id, isRunning);
  t.equal(engine.hanging().length, limits.pullsPerTenant, 'while the pulls of the other hang');
  t.equal(engine.givenUp().length, 0);
  await agent.kill9();
});

t.test('an engine that answers and lists nothing is a fault of the host, logged once', async (t) => {
  const { controlPlane, engine, agent } = await startGround(t);
  const { id } = controlPlane.desire(image('well'));
  await controlPlane.reported(id, isRunning);
  engine.intercept(({ path }) => (path === '/containers/json' ? refusal(500, 'database is locked') : undefined));
  const faults = () => controlPlane.beats().at(-1)?.faults ?? [];
  await until('a beat that names the fault', () => faults().some(({ kind }) => kind === 'engine_degraded'));
  t.match(faults()[0]?.message, /database is locked/);
  t.match(await agent.metrics(), 'longshore_agent_fault{kind="engine_degraded"} 1');
  controlPlane.desireAll(Array.from({ length: 10 }, (_, index) => image(`more-${index}`)));
  const failed = engine.calls().length;
  await until('more calls that fail', () => engine.calls().length > failed + 30);
  engine.intercept(undefined);
  await agent.logged('host_fault_cleared');
  await until('a beat without the fault', () => faults().length === 0);
  t.same(
    agent.lines.filter(({ level }) => level === 'error').map(({ event }) => event),
    ['host_fault_raised'],
    'one error in all',
  );
  await agent.kill9();
});

/** A frame of the engine's raw stream: 1 is stdout, 3 the engine's own error. */
function frame(stream: 1 | 3, text: string): Buffer {
  const head = Buffer.alloc(8);
  head[0] = stream;
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

t.test('a container whose log cannot be read to its end is removed all the same', async (t) => {
  const { controlPlane, engine, agent } = await startGround(t);
  const readable = frame(1, '2026-01-02T03:04:05.000000001Z the last that could be read\n');
  engine.intercept(({ path }, response) => {
    if (!path.endsWith('/logs')) return undefined;
    response.writeHead(200);
    response.end(Buffer.concat([readable, frame(3, 'error from daemon: unexpected end of JSON input\n')]));
    return 'answered';
  });
  const { id } = controlPlane.desire(image('well'));
  await controlPlane.reported(id, isRunning);
  controlPlane.desire({ ...image('well'), id, desired: 'removed' });
  const removing = await controlPlane.reported(
    id,
    ({ observation }) => observation.status === 'removing' && observation.message !== null,
  );
  t.match(removing.observation.message, /its log cannot be saved/);
  await agent.logged('step_taken', ({ detail }) => /unexpected end of JSON input/.test(String(detail)));
  await controlPlane.reported(id, ({ gone }) => gone, 120_000);
  t.same(engine.model.ofTenants(), []);
  t.match(await agent.logged('log_abandoned'), { level: 'error', container: id, why: /unexpected end of JSON input/ });
  t.match(await agent.metrics(), /longshore_agent_logs_abandoned_total 1/);
  t.same(
    (await controlPlane.capturedLines(id)).map(({ line }) => line),
    ['the last that could be read'],
    'the readable lines are captured once',
  );
  await agent.kill9();
});
