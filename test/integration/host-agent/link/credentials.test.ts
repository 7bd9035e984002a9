/** Credentials of an agent (ADR 22): it renews them, and they allow all that it does. */
import t, { type Test } from 'tap';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mintHostUserJwt } from '../../../support/host-user.ts';
import { keyFrom, lifetimeOf, loadSeed, type Identity } from '../../../../host-agent/link/identity/identity.ts';
import { startAgent } from '../../../host-agent/support/agent.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { host } from '../../../host-agent/support/control-plane-state.ts';
import { until } from '../../../support/until.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';

async function startGround(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-credentials-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = await simulatedEngine(t);
  const stateDir = join(dir, 'agent');
  const start = (env = {}) => startAgent(t, { dockerHost: engine.host, stateDir, controlPlane, env });
  return { controlPlane, stateDir, start };
}

const image = { registry: 'registry.example', repository: 'web', tag: '1', cpu_millis: 10, mem_bytes: 8 * 1024 ** 2 };

t.test('credentials that end soon are renewed', async (t) => {
  const { controlPlane, stateDir, start } = await startGround(t);
  const { nats, cluster } = controlPlane;
  const publicKey = keyFrom(await loadSeed(stateDir)).getPublicKey();
  const hostsSigningSeed = readFileSync(nats.hostsSigningSeedFile, 'utf8');
  const expiresAtS = Math.floor(Date.now() / 1000) + 20;
  const hosts = { hostsAccount: nats.hostsAccount, hostsSigningSeed, expiresAtS };
  const jwt = await mintHostUserJwt({ hostKey: host, publicKey, ...hosts });
  const file = join(stateDir, 'identity.json');
  const identity: Identity = { host, region: 'default', cluster, natsUrls: [nats.url], jwt };
  writeFileSync(file, JSON.stringify(identity));
  start();
  await until('later ones are on its disk', () => {
    const stored = JSON.parse(readFileSync(file, 'utf8')) as Identity;
    return (lifetimeOf(stored.jwt)?.untilMs ?? 0) > expiresAtS * 1000;
  });
  t.same(
    controlPlane.hellos().map(({ renew_key: renewed }) => renewed),
    [undefined, publicKey],
    'once',
  );
  t.ok(controlPlane.senders().every(({ user }) => user === publicKey));
});

t.test('a refusal is no contact: a forgotten host stops its containers', async (t) => {
  const { controlPlane, start } = await startGround(t);
  const agent = start({ SYNC_INTERVAL: '1s', STOP_ON_DISCONNECT: '4s' });
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  controlPlane.forget();
  await agent.logged('hello_refused');
  await agent.logged('host_isolated');
});

t.test('credentials allow all messages of an agent with hundreds of containers', async (t) => {
  const { controlPlane, start } = await startGround(t);
  const agent = start();
  const made = controlPlane.desireAll(Array.from({ length: 250 }, (_, index) => ({ ...image, tag: `${index}` })));
  for (const { id } of made) {
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running', 240_000);
  }
  t.equal(agent.exitCode(), undefined);
  const refused = agent.lines.filter(({ event }) => event === 'nats_error' || event === 'nats_disconnected');
  t.same(refused, [], 'the server refused nothing');
});
