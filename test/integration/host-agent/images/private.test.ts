/** Logins of private registries, at each pull (ADR 38). */
import t from 'tap';
import { privateRig } from '../../../host-agent/support/secrets/private-rig.ts';
import { passwords, username } from '../../../support/private-registry.ts';

t.setTimeout(300_000);
const [first, second] = passwords;

for (const kind of ['basic', 'token'] as const) {
  t.test(`a registry with ${kind} authentication`, async (t) => {
    const { agent, controlPlane, vault, registry, image, setLogin, ended } = await privateRig(t, kind);
    const running = agent();
    const { id, ...without } = await ended({ ...image, tenant: 'acme' });
    t.match(without, { status: 'failed', reason: 'image_auth', message: /put a login for this registry/ });

    setLogin('acme', 'wrong-pass-3Jd');
    controlPlane.desire({ id });
    const wrong = await controlPlane.reported(id, ({ observation }) =>
      /refuses the login/.test(observation.message ?? ''),
    );
    t.match(wrong.observation, { status: 'failed', reason: 'image_auth' });

    setLogin('acme', first);
    controlPlane.desire({ id });
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running');

    await t.test('a rotated password is used at the next pull', async (t) => {
      registry.setPassword(second);
      const always = { ...image, tenant: 'acme', pull_policy: 'always' } as const;
      t.match(await ended(always), { status: 'failed', reason: 'image_auth' });
      setLogin('acme', second);
      t.match(await ended(always), { status: 'running' });
    });

    await t.test(
      'without the control plane, the login on disk is used; one that is refused is not the last word',
      async (t) => {
        vault.play('silent');
        const always = { ...image, tenant: 'acme', pull_policy: 'always' } as const;
        t.match(await ended(always), { status: 'running' });
        registry.setPassword(first);
        const { id: waiting, ...refused } = await ended(always);
        t.match(refused, { status: 'backoff', reason: 'image_auth', message: /out of date/ });
        setLogin('acme', first);
        vault.play('open');
        await controlPlane.reported(waiting, ({ observation }) => observation.status === 'running');
      },
    );

    const said = JSON.stringify([running.lines, controlPlane.reports()]);
    for (const password of [first, second, 'wrong-pass-3Jd']) {
      t.notMatch(said, password, 'no password in a log or a report');
      t.notMatch(said, Buffer.from(`${username}:${password}`).toString('base64'));
    }
  });
}
