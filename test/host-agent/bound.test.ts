/** Credentials that name the agent's key in their subjects (ADR 22): how an agent comes by them, and that they suffice. */
import t, { type Test } from 'tap';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mintHostUserJwt } from '../../deploy/nats.ts';
import { keyFrom, loadSeed, senderOf, type Identity } from '../../host-agent/identity.ts';
import { startAgent } from './support/agent.ts';
import { host, startControlPlane } from './support/control-plane.ts';
import { eventually } from './support/eventually.ts';
import { startFakeEngine } from './support/fake-engine.ts';

async function startGround(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-bound-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = await startFakeEngine(t);
  const stateDir = join(dir, 'agent');
  const identityFile = join(stateDir, 'identity.json');
  const start = () => startAgent(t, { dockerHost: engine.host, stateDir, controlPlane });
  const stored = (): Identity => JSON.parse(readFileSync(identityFile, 'utf8')) as Identity;
  /** As an agent of the last release has left it. */
  const enrolledBefore = async (): Promise<string> => {
    const publicKey = keyFrom(await loadSeed(stateDir)).getPublicKey();
    const { nats, cluster } = controlPlane;
    const jwt = await mintHostUserJwt({
      hostKey: host,
      publicKey,
      hostsAccount: nats.hostsAccount,
      hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
      isUnbound: true,
    });
    writeFileSync(identityFile, JSON.stringify({ host, region: 'default', cluster, natsUrls: [nats.url], jwt }));
    return publicKey;
  };
  const beatOf = async (user: string | undefined): Promise<void> => {
    await eventually(
      () => controlPlane.senders().at(-1)?.user === user && controlPlane.senders().length > 0,
      () => `a heartbeat of ${user}: ${JSON.stringify(controlPlane.senders().at(-1))}`,
    );
  };
  return { controlPlane, stateDir, start, stored, enrolledBefore, beatOf };
}

const image = { registry: 'registry.example', repository: 'web', tag: '1', cpu_millis: 10, mem_bytes: 8 * 1024 ** 2 };

t.test('an agent that enrolled with the last release trades its credentials at its first start', async (t) => {
  const { controlPlane, start, stored, enrolledBefore, beatOf } = await startGround(t);
  const key = await enrolledBefore();
  const first = start();
  await beatOf(key);
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  await eventually(
    () => senderOf(stored()).user === key,
    () => 'they are on its disk',
  );
  t.same(
    controlPlane.hellos().map(({ wants_bound: wants = false }) => wants),
    [true, false],
    'it asks for them, and for nothing else, before it asks for a session',
  );
  await first.kill9();

  start();
  const asked = controlPlane.hellos().length;
  await eventually(
    () => controlPlane.hellos().length > asked,
    () => 'it starts again',
  );
  t.equal(controlPlane.hellos().at(-1)?.wants_bound, undefined, 'and has them');
});

t.test('beside a control plane of the last release it goes on with what it has', async (t) => {
  const { controlPlane, start, enrolledBefore, beatOf } = await startGround(t);
  controlPlane.playLastRelease();
  await enrolledBefore();
  start();
  await beatOf(undefined);
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  t.pass('and runs what it should');
});

t.test('an agent with hundreds of containers keeps to what its credentials allow', async (t) => {
  const { controlPlane, start } = await startGround(t);
  const agent = start();
  const made = controlPlane.desireAll(Array.from({ length: 250 }, (_, index) => ({ ...image, tag: `${index}` })));
  for (const { id } of made) {
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running', 240_000);
  }
  t.equal(agent.exitCode(), undefined);
  const refused = agent.lines.filter(({ event }) => event === 'nats_error' || event === 'nats_disconnect');
  t.same(refused, [], 'the server has refused it nothing');
});
