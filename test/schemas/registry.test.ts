/** Registries that a list of rules allows. */
import t from 'tap';
import { hostsOfRegistry, isRegistryRule, judgeRegistry, type RegistryVerdict } from '../../schemas/api/registry.ts';

const tables: readonly (readonly [rules: readonly string[], Readonly<Record<string, RegistryVerdict>>])[] = [
  [
    ['public'],
    {
      'docker.io': 'public',
      'ghcr.io': 'public',
      'GHCR.io:443': 'public',
      'registry.example.net:5000': 'public',
      'xn--bcher-kva.example': 'public',
      localhost: 'refused',
      'localhost:5000': 'refused',
      'a.localhost': 'refused',
      registry: 'refused',
      'registry:5000': 'refused',
      '127.0.0.1:5000': 'refused',
      '10.1.2.3': 'refused',
      '8.8.8.8': 'refused',
      '127.1': 'refused',
      '0x7f.1': 'refused',
      '0x7f.0.0.0x1': 'refused',
      '017700000001.0': 'refused',
      '2130706433': 'refused',
      '[::1]:5000': 'refused',
      '[2001:db8::1]': 'refused',
      public: 'refused',
    },
  ],
  [
    ['docker.io', '10.1.2.3:5000', '[FD00::1]:5000', 'Registry.Corp.example', '*.ecr.example', 'any.example:*'],
    {
      'docker.io': 'named',
      'index.docker.io': 'named',
      'registry-1.docker.io': 'named',
      'docker.io:5000': 'refused',
      'evil-docker.io': 'refused',
      '10.1.2.3:5000': 'named',
      '10.1.2.3': 'refused',
      '10.1.2.3:05000': 'named',
      '[fd00::1]:5000': 'named',
      'registry.corp.example': 'named',
      'registry.corp.example:443': 'named',
      'registry.corp.example:22': 'refused',
      'a.ecr.example': 'named',
      'a.b.ECR.example': 'named',
      'ecr.example': 'refused',
      'aecr.example': 'refused',
      'any.example:1': 'named',
      'any.example': 'named',
      'quay.io': 'refused',
    },
  ],
  [[], { 'docker.io': 'refused' }],
  [['public', 'localhost:5000'], { 'localhost:5000': 'named', 'quay.io': 'public', 'localhost:5001': 'refused' }],
];
for (const [rules, verdicts] of tables) {
  t.test(`rules ${rules.join(', ') || '(none)'}`, (t) => {
    for (const [registry, verdict] of Object.entries(verdicts))
      t.equal(judgeRegistry(registry, rules), verdict, registry);
    t.end();
  });
}

t.test('forms of a rule', (t) => {
  for (const good of [
    'public',
    'a.example',
    'a.example:5000',
    'a.example:*',
    '*.example',
    '*.a.example:*',
    '[::1]:5000',
  ])
    t.ok(isRegistryRule(good), good);
  for (const bad of [
    '',
    '*',
    '*.',
    'a.*.example',
    'https://a.example',
    'a.example/',
    'a.example:0',
    'a b',
    '::1',
    '**.a',
  ])
    t.notOk(isRegistryRule(bad), bad);
  t.end();
});

t.test('the names that the engine looks up', (t) => {
  t.same(hostsOfRegistry('ghcr.io:8443'), ['ghcr.io']);
  t.match(hostsOfRegistry('docker.io'), ['docker.io', 'index.docker.io', 'registry-1.docker.io', 'auth.docker.io']);
  t.end();
});
