import t from 'tap';
import { routes } from '../../../schemas/routes.ts';
import { createRouter } from '../../../gateway/http/router.ts';

const router = createRouter(routes);
const id = '01234567-89ab-7cde-8f01-23456789abcd';

/** A match as text. */
function told(method: string, path: string): string {
  const match = router.match(method, path);
  switch (match.kind) {
    case 'route':
      return [match.route.name, ...(match.params === undefined ? ['nothing'] : Object.values(match.params))].join(' ');
    case 'options':
      return `options ${match.allow}`;
    case 'method':
      return `allow ${match.allow}`;
    case 'none':
      return match.guarded ? 'guarded' : 'none';
  }
}

const table: readonly (readonly [method: string, path: string, told: string])[] = [
  ['GET', '/api/v2/compute', 'container.list'],
  ['GET', '/api/v2/compute/', 'container.list'],
  ['HEAD', '/api/v2/compute/', 'container.list'],
  ['HEAD', '/login/once', 'allow GET, OPTIONS'],
  ['OPTIONS', '/login/callback', 'options GET, OPTIONS'],
  ['POST', '/api/v2/compute/', 'container.create'],
  ['GET', '/api/v2/compute/quota', 'tenant.quota'],
  ['GET', '/api/v2/compute/quota/', 'tenant.quota'],
  ['GET', '/api/v2/compute/events', 'event.list'],
  ['GET', `/api/v2/compute/${id}`, `container.get ${id}`],
  ['GET', `/api/v2/compute/${id}/`, `container.get ${id}`],
  ['GET', '/api/v2/compute/a%20b', 'container.get a b'],
  ['POST', `/api/v2/compute/${id}/start/`, `container.start ${id}`],
  ['DELETE', `/api/v2/compute/${id}`, `container.delete ${id}`],
  ['GET', `/api/v2/operator/tenants/acme/containers/${id}`, `container.inspect acme ${id}`],
  ['POST', '/api/v2/hosts/enrol', 'host.enrol'],
  ['GET', '/healthz', 'healthz'],
  ['PUT', '/api/v2/compute', 'allow GET, HEAD, POST, OPTIONS'],
  ['get', '/api/v2/compute', 'allow GET, HEAD, POST, OPTIONS'],
  ['GET', `/api/v2/compute/${id}/start`, 'allow POST, OPTIONS'],
  ['HEAD', `/api/v2/compute/${id}/start`, 'allow POST, OPTIONS'],
  ['OPTIONS', `/api/v2/compute/${id}`, 'options GET, HEAD, PATCH, DELETE, OPTIONS'],
  ['OPTIONS', '/api/v2/compute/a/b/c', 'none'],
  ['GET', '/', 'none'],
  ['GET', '', 'none'],
  ['GET', '*', 'none'],
  ['GET', 'http://x/api/v2/compute', 'none'],
  ['GET', '/api', 'none'],
  ['GET', '/api/v2/computer', 'none'],
  ['GET', '/API/v2/compute', 'none'],
  ['GET', '/api/v2/%63ompute', 'none'],
  ['GET', '/api/v2/compute//', 'guarded'],
  ['GET', `/api/v2/compute//${id}`, 'guarded'],
  ['GET', '/api/v2/compute/..', 'container.get nothing'],
  ['GET', '/api/v2/compute/%2e%2e', 'container.get nothing'],
  ['GET', '/api/v2/compute/.', 'container.get nothing'],
  ['GET', '/api/v2/compute/a%2fb', 'container.get nothing'],
  ['GET', '/api/v2/compute/a%2Fb/start', 'allow POST, OPTIONS'],
  ['POST', '/api/v2/compute/a%2Fb/start', 'container.start nothing'],
  ['GET', '/api/v2/compute/a%00', 'container.get nothing'],
  ['GET', '/api/v2/compute/%1b%5d52', 'container.get nothing'],
  ['GET', '/api/v2/compute/a%C2%9B', 'container.get nothing'],
  ['GET', '/api/v2/compute/a%E2%80%AEb', 'container.get nothing'],
  ['GET', '/api/v2/compute/%', 'container.get nothing'],
  ['GET', '/api/v2/compute/%ff', 'container.get nothing'],
  ['GET', `/api/v2/compute/${id}/nope`, 'guarded'],
  ['POST', '/login/tenants/a%2fb', 'login.choose nothing'],
  ['GET', '/api/v2/operator', 'guarded'],
  ['GET', '/api/v2/operator/x', 'guarded'],
  ['GET', '/api/v2/hosts', 'none'],
];

for (const [method, path, expected] of table) t.equal(told(method, path), expected, `${method} ${path}`);

t.test('every route of the table is found by its own path, and its parameters by their names', async (t) => {
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, 'p-$1');
    const match = router.match(route.method, path);
    t.equal(match.kind === 'route' ? match.route.name : match.kind, route.name, path);
    if (match.kind === 'route')
      for (const [name, value] of Object.entries(match.params ?? {})) t.equal(value, `p-${name}`);
  }
});

t.test('one place can not have two names', async (t) => {
  const [first] = routes;
  const clash = [
    { ...first, path: '/a/:one' },
    { ...first, path: '/a/:two/b' },
  ];
  t.throws(() => createRouter(clash), /another parameter name/);
});
