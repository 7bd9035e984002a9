import t, { type Test } from 'tap';
import { carryOut, type Work } from '../../../cli/apply/execute.ts';
import { findAll, type Found } from '../../../cli/apply/found.ts';
import { planOf } from '../../../cli/apply/plan.ts';
import { Output } from '../../../cli/terminal/output.ts';
import { createApi } from '../../../cli/client/api.ts';
import { farEnd, type Scripted } from '../client/server.ts';
import { empty, foundAs, peer, wantedIn } from './declared.ts';

/** A server that gives each request, by method and path, its answer; 200 if none is named. */
async function start(t: Test, answers: Readonly<Record<string, Scripted>> = {}, signal = new AbortController().signal) {
  const usual: Scripted = { status: 200, body: { data: { id: 'made', version: 1, updated_at: null } } };
  const { url, asked } = await farEnd(t, (response, { method, path }) => {
    const { status, body } = answers[`${method} ${path}`] ?? usual;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const { env, stdin } = process;
  const [stdout, stderr] = [new Output(process.stdout), new Output(process.stderr)];
  const work: Work = {
    context: {
      api: createApi({ server: url, signal }),
      server: url,
      token: '',
      isJson: false,
      terminal: { env, stdin, stdout, stderr, signal, nowMs: () => 0 },
      show: () => {},
      tell: () => {},
    },
    values: { secrets: new Map([['key', Buffer.from('x')]]), registries: new Map() },
    isDetached: true,
    timeoutS: 1,
    stableS: 0,
  };
  return { work, requests: () => asked.map(({ method, path }) => `${method} ${path}`), asked };
}

const compute = '/api/v2/compute';

t.test('a container gets its policy and its secrets before its first start', async (t) => {
  const { work, requests } = await start(t);
  const wanted = wantedIn({ secrets: { key: { value: 'x' } }, containers: { web: { image: 'web' } } });
  const { done, error } = await carryOut(work, planOf(wanted, empty).steps);
  t.equal(error, undefined);
  t.same(
    done.map(({ outcome }) => outcome),
    ['changed', 'changed'],
  );
  t.same(requests(), [
    `PUT ${compute}/secrets/key`,
    `POST ${compute}?start=false`,
    `PUT ${compute}/made/policy`,
    `PUT ${compute}/made/secrets`,
    `POST ${compute}/made/start`,
  ]);
});

t.test('the project is set before the variable of the last release is removed', async (t) => {
  const { work, requests, asked } = await start(t);
  const wanted = wantedIn({ name: 'shop', containers: { web: { image: 'web', labels: { team: 'a' } } } });
  const one = foundAs(wanted, 'web', { project: null, labels: {} });
  const marked = { ...one, container: { ...one.container, env: { LONGSHORE_APPLY: 'shop' } } };
  const { error } = await carryOut(work, planOf(wanted, { ...empty, containers: new Map([['web', marked]]) }).steps);
  t.equal(error, undefined);
  const path = `${compute}/id-of-web`;
  t.same(requests(), [`PUT ${path}/labels`, `PUT ${path}/project`, `PATCH ${path}`]);
  t.same(
    asked.map(({ body }) => JSON.parse(body) as unknown),
    [{ team: 'a' }, { project: 'shop' }, { env: { LONGSHORE_APPLY: null } }],
  );
});

t.test('a named file is refused where the server keeps no projects', async (t) => {
  const container = { id: 'a', name: 'web', env: {}, status: 'running' };
  for (const status of [404, 503]) {
    const { work, requests } = await start(t, {
      'GET /api/v2/containers': { status, body: { error: 'not_found' } },
      [`GET ${compute}`]: { status: 200, body: { data: [container] } },
      [`GET ${compute}/secrets`]: { status: 200, body: { data: [] } },
    });
    const named = wantedIn({ name: 'shop', containers: { db: { image: 'db' } } });
    await t.rejects(findAll(work.context, named), /keeps no projects: upgrade its actors and gateways/);
    const unnamed = wantedIn({ containers: { db: { image: 'db' } } });
    t.match(await findAll(work.context, unnamed), { strays: [] }, 'others need none');
    t.notOk(requests().some((request) => !request.startsWith('GET')));
  }
});

t.test('a change that somebody else has made is not overwritten', async (t) => {
  const refused: Scripted = { status: 412, body: { error: 'precondition_failed' } };
  const { work, asked } = await start(t, { [`PATCH ${compute}/id-of-web`]: refused });
  const before = wantedIn({ containers: { web: { image: 'web:1' } } });
  const wanted = wantedIn({ containers: { web: { image: 'web:2' }, db: { image: 'db' } } });
  const found: Found = { ...empty, containers: new Map([['web', foundAs(before, 'web')]]) };
  const { done, error } = await carryOut(work, planOf(wanted, found).steps);
  t.match(error, { message: 'somebody else has changed web meanwhile: look at it, and run this again' });
  t.same(
    done.map(({ step, outcome }) => `${step.name} ${outcome}`),
    ['web failed', 'db left'],
  );
  t.match(asked, [{ method: 'PATCH', headers: { 'if-match': '"1"' }, body: '{"tag":"2"}' }]);
});

t.test('after Ctrl-C no step begins', async (t) => {
  const { work, requests } = await start(t, {}, AbortSignal.abort());
  const { done, error } = await carryOut(work, planOf(wantedIn({ containers: { web: { image: 'a' } } }), empty).steps);
  t.match(error, { name: 'InterruptedError' });
  t.match(done, [{ outcome: 'left' }]);
  t.same(requests(), []);
});

t.test('what is gone already needs no removal; what is in use ends the work', async (t) => {
  const { work, requests } = await start(t, {
    [`DELETE ${compute}/secrets/gone`]: { status: 404, body: { error: 'not_found' } },
    [`DELETE ${compute}/secrets/used`]: { status: 409, body: { error: 'conflict', message: 'web uses it' } },
  });
  const wanted = wantedIn({ removed: { secrets: ['gone', 'used'], peers: ['phone'] } });
  const secrets = new Map([
    ['gone', 1],
    ['used', 1],
  ]);
  const found: Found = { ...empty, secrets, peers: new Map([['phone', peer()]]) };
  const { done, error } = await carryOut(work, planOf(wanted, found).steps);
  t.match(error, { message: 'web uses it' });
  t.same(
    done.map(({ outcome }) => outcome),
    ['changed', 'failed', 'left'],
  );
  t.same(requests(), [`DELETE ${compute}/secrets/gone`, `DELETE ${compute}/secrets/used`]);
});

t.test('a peer that is made disabled, and one that changes', async (t) => {
  const { work, asked } = await start(t);
  const wanted = wantedIn({ peers: { tablet: { enabled: false }, phone: { dns: ['10.0.0.53'] } } });
  const { done } = await carryOut(work, planOf(wanted, { ...empty, peers: new Map([['phone', peer()]]) }).steps);
  t.match(done, [{ outcome: 'changed' }, { outcome: 'changed' }]);
  t.match(asked, [
    { method: 'POST', path: '/api/forage/peers', body: '{"name":"tablet"}' },
    { method: 'PATCH', path: '/api/forage/peers/made', body: '{"enabled":false}' },
    { method: 'PATCH', path: `/api/forage/peers/${peer().id}`, body: '{"dns":["10.0.0.53"]}' },
  ]);
});
