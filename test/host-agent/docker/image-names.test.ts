import t from 'tap';
import { digestFor, familiar } from '../../../host-agent/docker/image-names.ts';

const digest = `sha256:${'a'.repeat(64)}`;

t.test('references are compared in the form that the engine shows', (t) => {
  t.equal(familiar('docker.io/library/nginx:1'), 'nginx:1');
  t.equal(familiar('docker.io/acme/web:1'), 'acme/web:1');
  t.equal(familiar('127.0.0.1:5000/library/web:1'), '127.0.0.1:5000/library/web:1');
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
