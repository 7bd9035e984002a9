import t from 'tap';
import { imageIn, nameFor } from '../../../cli/tenant/image.ts';

t.test('names of images are read as Docker reads them', (t) => {
  const rows: readonly (readonly [string, object])[] = [
    ['nginx', { registry: 'docker.io', repository: 'library/nginx' }],
    ['nginx:1.27', { registry: 'docker.io', repository: 'library/nginx', tag: '1.27' }],
    ['grafana/grafana', { registry: 'docker.io', repository: 'grafana/grafana' }],
    ['docker.io/nginx', { registry: 'docker.io', repository: 'library/nginx' }],
    ['localhost/web', { registry: 'localhost', repository: 'web' }],
    ['127.0.0.1:5000/team/web:1', { registry: '127.0.0.1:5000', repository: 'team/web', tag: '1' }],
    ['ghcr.io/a/b/c:x@sha256:00', { registry: 'ghcr.io', repository: 'a/b/c', tag: 'x', digest: 'sha256:00' }],
  ];
  for (const [text, image] of rows) t.same(imageIn(text), image, text);
  for (const text of ['', ':1', 'web:', 'ghcr.io/', 'web@', 'web@a@b'])
    t.throws(() => imageIn(text), { name: 'WrongUsage' }, text);
  t.equal(nameFor(imageIn('ghcr.io/a/b/c:x')), 'c');
  t.end();
});
