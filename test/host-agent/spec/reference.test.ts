import t from 'tap';
import { referenceOf } from '../../../host-agent/spec/reference.ts';
import { container } from '../support/decisions.ts';

const digest = `sha256:${'a'.repeat(64)}`;

for (const [name, changes, reference] of [
  ['registry, repository and tag', {}, 'docker.io/longshore/web:1'],
  ['a digest wins over a tag', { digest }, `docker.io/longshore/web@${digest}`],
  ['a digest alone', { digest, tag: null }, `docker.io/longshore/web@${digest}`],
  ['a port in the registry', { registry: '127.0.0.1:5000' }, '127.0.0.1:5000/longshore/web:1'],
  ['no tag', { tag: null }, 'docker.io/longshore/web:latest'],
] as const) {
  t.test(`reference: ${name}`, (t) => {
    t.match(referenceOf(container(changes)), { kind: 'image', reference });
    t.end();
  });
}

t.test('a reference that would leave the path of a call is invalid', (t) => {
  for (const changes of [
    { repository: '../../containers' },
    { tag: '1/../x' },
    { registry: 'a/b' },
    { digest: 'sha256:..' },
  ]) {
    t.match(referenceOf(container(changes)), { kind: 'invalid' });
  }
  t.end();
});
