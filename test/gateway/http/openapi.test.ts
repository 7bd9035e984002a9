import { Validator } from '@seriousme/openapi-schema-validator';
import t from 'tap';
import { openApiDocument } from '../../../gateway/http/openapi.ts';
import { createRouter } from '../../../gateway/http/router.ts';
import { errorStatus } from '../../../schemas/errors.ts';
import { authErrors, commonErrors, routes } from '../../../schemas/routes.ts';

const document = JSON.parse(JSON.stringify(openApiDocument(routes, '1.2.3'))) as {
  info: { version: string };
  paths: Record<
    string,
    Record<string, { operationId: string; responses: Record<string, unknown>; security?: unknown }>
  >;
};

t.test('it is OpenAPI 3.1', async (t) => {
  const validator = new Validator();
  const result = await validator.validate(structuredClone(document));
  t.equal(result.valid, true, JSON.stringify(result.errors)?.slice(0, 2000));
  t.equal(validator.version, '3.1');
  t.equal(document.info.version, '1.2.3');
});

const credentials = {
  public: [],
  tenant: undefined,
  operator: undefined,
  download: [{ bearer: [] }, { cookie: [] }, { url_token: [] }],
  pac: [{ url_token: [] }],
} as const;

t.test('every route is in it, with every status that it may answer, and nothing else is', async (t) => {
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  t.equal(operations.length, routes.length);
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, routes.length);
  const router = createRouter(routes);
  for (const [template, methods] of Object.entries(document.paths)) {
    for (const [method, { responses, security }] of Object.entries(methods)) {
      const match = router.match(method.toUpperCase(), template.replaceAll(/[{}]/g, ''));
      if (match.kind !== 'route') {
        t.fail(`${method} ${template} is no route`);
        continue;
      }
      const { route } = match;
      const codes = [...route.errors, ...commonErrors, ...(route.access === 'public' ? [] : authErrors)];
      for (const code of codes) t.ok(responses[String(errorStatus[code])], `${route.name}: ${code}`);
      t.same(security, credentials[route.access], `${route.name}: credentials`);
    }
  }
});
