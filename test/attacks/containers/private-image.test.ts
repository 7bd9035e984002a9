/**
 * A tenant without a login names the private image of another, which is on the host already: by
 * tag, by digest and under another name (ADR 38).
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Desire } from '../../host-agent/support/control-plane-state.ts';
import { privateRig } from '../../host-agent/support/secrets/private-rig.ts';
import { passwords } from '../../support/private-registry.ts';

t.setTimeout(120_000);
const [first] = passwords;

t.test('two tenants and one private image', async (t) => {
  const { agent, controlPlane, image, setLogin, ended, engine, open } = await privateRig(t, 'basic');
  let running = agent();
  setLogin('acme', first);
  const own = await ended({ ...image, tenant: 'acme' });
  t.equal(own.status, 'running');
  const { Config } = await engine.only(own.id);
  const reference = Config.Labels['longshore.reference'] ?? '';
  const found = JSON.parse((await engine.call('GET', `/images/${reference}/json`)).text) as { RepoDigests: string[] };
  const digest = found.RepoDigests[0]?.split('@')[1];
  if (digest === undefined) throw new Error('the image has no digest');
  const byDigest: Desire = { ...image, tag: null, digest };

  await t.test('the image is here, and is not given to a tenant without a login', async (t) => {
    for (const desire of [image, byDigest]) {
      t.match(await ended({ ...desire, tenant: 'other' }), { status: 'failed', reason: 'image_auth' });
    }
    t.match(await ended({ ...image, tenant: 'other', pull_policy: 'never' }), {
      status: 'failed',
      reason: 'image_auth',
      message: /another tenant/,
    });
    // The engine has the manifest, so it would not ask a registry of that name.
    const elsewhere: Desire = { ...byDigest, registry: String(open), repository: 'longshore/demo' };
    t.match(await ended({ ...elsewhere, tenant: 'other' }), { status: 'failed', reason: 'image_not_found' });
  });

  await t.test('nor after a restart of the agent, nor when its record is lost', async (t) => {
    await running.stop();
    running = agent();
    t.match(await ended({ ...image, tenant: 'other' }), { status: 'failed', reason: 'image_auth' });
    await running.stop();
    for (const name of ['image-access.json', 'image-access.log']) rmSync(join(running.stateDir, name), { force: true });
    running = agent();
    t.match(await ended({ ...image, tenant: 'other' }), { status: 'failed', reason: 'image_auth' });
  });

  await t.test('its own tenant has it without the registry; another proves its access first', async (t) => {
    t.match(await ended({ ...byDigest, tenant: 'acme' }), { status: 'running' });
    setLogin('other', first);
    t.match(await ended({ ...image, tenant: 'other' }), { status: 'running' });
    controlPlane.vault.setLogin('other', String(image.registry), null);
    t.match(await ended({ ...image, tenant: 'other' }), { status: 'running' }, 'what was proved stays proved');
  });
  t.same(controlPlane.faults(), []);
});
