import t from 'tap';
import { digestFor, referenceOf } from '../../../host-agent/spec/reference.ts';
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

t.test('the digest that an image has in the repository of a reference', (t) => {
  const other = `sha256:${'b'.repeat(64)}`;
  const known = [`ghcr.io/team/web@${other}`, `127.0.0.1:5000/team/web@${digest}`, `nginx@${other}`];
  t.equal(digestFor('127.0.0.1:5000/team/web:1', known), digest);
  t.equal(digestFor(`127.0.0.1:5000/team/web@${digest}`, known), digest);
  t.equal(digestFor('docker.io/library/nginx:1', known), other, 'as Docker writes it');
  t.equal(digestFor('docker.io/library/nginx:1', [`docker.io/library/nginx@${other}`]), other, 'as Podman writes it');
  t.equal(digestFor('quay.io/team/web:1', known), undefined, 'it came from elsewhere');
  t.equal(digestFor('docker.io/library/nginx:1', ['nginx@sha256:../x']), undefined);
  t.end();
});
