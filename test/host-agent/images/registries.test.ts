/** Registries that the agent lets its engine reach. */
import t from 'tap';
import { createPermit, isVouched, type RegistryFault } from '../../../host-agent/images/registries.ts';
import { settings } from '../../../host-agent/settings.ts';

const names: Readonly<Record<string, readonly string[]>> = {
  'public.example.net': ['1.1.1.1', '2606:4700::1111'],
  'inside.example.net': ['10.0.0.5'],
  'both.example.net': ['1.1.1.1', 'fd00::5'],
  'metadata.example.net': ['169.254.169.254'],
  'none.example.net': [],
  'docker.io': ['1.1.1.1'],
  'index.docker.io': ['1.1.1.1'],
  'registry-1.docker.io': ['1.1.1.1'],
  'auth.docker.io': ['1.1.1.1'],
};

/** Records the names that were looked up. */
function permitOf(allowed: readonly string[], known = names) {
  const asked: string[] = [];
  const permit = createPermit(allowed, (name) => {
    asked.push(name);
    const addresses = known[name];
    return addresses === undefined ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(addresses);
  });
  const verdict = async (registry: string): Promise<RegistryFault | 'allowed'> =>
    permit(registry).then(
      () => 'allowed',
      (error: { fault: RegistryFault }) => error.fault,
    );
  return { verdict, asked };
}

t.test('public: the name resolves, and only to public addresses', async (t) => {
  const { verdict } = permitOf(['public']);
  for (const [registry, expected] of [
    ['public.example.net', 'allowed'],
    ['public.example.net:5000', 'allowed'],
    ['docker.io', 'allowed'],
    ['inside.example.net', 'private_address'],
    ['both.example.net', 'private_address'],
    ['metadata.example.net', 'private_address'],
    ['none.example.net', 'unresolved'],
    ['unknown.example.net', 'unresolved'],
    ['127.0.0.1:5000', 'not_allowed'],
    ['[::1]:5000', 'not_allowed'],
    ['localhost', 'not_allowed'],
    ['169.254.169.254', 'not_allowed'],
  ] as const) {
    t.equal(await verdict(registry), expected, registry);
  }
  const forged = permitOf(['public'], { ...names, 'auth.docker.io': ['192.168.0.1'] });
  t.equal(await forged.verdict('docker.io'), 'private_address', 'every host name of Docker Hub counts');
});

t.test('a registry that a rule names is not looked up', async (t) => {
  const { verdict, asked } = permitOf(['public', '127.0.0.1:5000', '*.corp.example']);
  t.equal(await verdict('127.0.0.1:5000'), 'allowed');
  t.equal(await verdict('r.corp.example'), 'allowed');
  t.equal(await verdict('127.0.0.1:5001'), 'not_allowed');
  t.same(asked, []);
});

t.test('REGISTRIES_ALLOWED takes patterns of hosts and ports', (t) => {
  const { parse, fallback } = settings.REGISTRIES_ALLOWED;
  t.same(fallback?.value, ['public']);
  t.same(parse('public, 10.0.0.1:5000'), ['public', '10.0.0.1:5000']);
  for (const bad of [
    'https://r.example',
    'r.example/path',
    Array.from({ length: 65 }, (_, n) => `r${n}.example`).join(),
  ])
    t.equal(parse(bad), undefined, bad.slice(0, 40));
  t.end();
});

t.test('a registry is vouched for by the operator who names it, or is known to all', (t) => {
  const allowed = ['public', 'r.example', '*.corp.example', '127.0.0.1:*'];
  for (const registry of ['docker.io', 'ghcr.io', 'r.example', 'a.corp.example', '127.0.0.1:5000']) {
    t.ok(isVouched(registry, allowed), registry);
  }
  for (const registry of ['r.example:5000', 'evil.example', 'docker.io.evil.example']) {
    t.notOk(isVouched(registry, allowed), registry);
  }
  t.end();
});
