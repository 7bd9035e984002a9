import t, { type Test } from 'tap';
import { carryOut, type Work } from '../../../cli/apply/execute.ts';
import { foreseen } from '../../../cli/apply/foresee.ts';
import type { Found } from '../../../cli/apply/found.ts';
import { planOf } from '../../../cli/apply/plan.ts';
import { planText, valueOf } from '../../../cli/apply/show.ts';
import { Output } from '../../../cli/terminal/output.ts';
import { createApi } from '../../../cli/client/api.ts';
import { farEnd, type Scripted } from '../client/server.ts';
import { empty, foundAs, peer, wantedIn } from './declared.ts';

/** A server that gives each request, by method and path, its answer; 200 if none is named. */
async function start(t: Test, answers: Readonly<Record<string, Scripted>> = {}, signal = new AbortController().signal) {
  const usual: Scripted = { status: 200, body: { data: { id: 'made', version: 1, updated_at: null } } };
  const { url, asked } = await farEnd(t, (response, { method, path }) => {
    const { status, body } = answers[`${method} ${path}`] ?? usual;
    const headers = { 'content-type': 'application/json', 'longshore-generation': '2' };
    response.writeHead(status, headers).end(JSON.stringify(body));
  });
  const { env, stdin } = process;
  const [stdout, stderr] = [new Output(process.stdout), new Output(process.stderr)];
  const work: Work = {
    context: {
      api: createApi({ server: url, signal }),
      server: url,
      token: '',
      format: 'table',
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

const containers = '/api/v2/containers';

t.test('a container is made in one write', async (t) => {
  const { work, requests, asked } = await start(t);
  const wanted = wantedIn({
    name: 'shop',
    secrets: { key: { value: 'x' } },
    containers: {
      web: {
        image: 'web',
        process: { command: ['worker'] },
        policy: { restart: 'never' },
        secrets: { env: { KEY: 'key' } },
        labels: { team: 'a' },
        host_key: 'h2',
      },
    },
  });
  const { done, error } = await carryOut(work, planOf(wanted, empty).steps);
  t.equal(error, undefined);
  t.same(
    done.map(({ outcome }) => outcome),
    ['changed', 'changed'],
  );
  t.same(requests(), [`PUT ${compute}/secrets/key`, `POST ${containers}`]);
  t.match(asked[1]?.headers['idempotency-key'], /^[\da-f-]{36}$/, 'a repetition makes no second one');
  t.match(JSON.parse(asked[1]?.body ?? ''), {
    name: 'web',
    image: { repository: 'library/web', tag: 'latest' },
    process: { command: ['worker'] },
    policy: { restart: 'never' },
    secrets: { env: { KEY: 'key' } },
    labels: { team: 'a' },
    project: 'shop',
    host_key: 'h2',
  });
});

t.test('a change is one write, which starts what is stopped', async (t) => {
  const { work, requests, asked } = await start(t);
  const wanted = wantedIn({ name: 'shop', containers: { web: { image: 'web', labels: { team: 'a' } } } });
  const one = foundAs(wanted, 'web', { desired: 'stopped', status: 'stopped' });
  const marked = { ...one, document: { ...one.document, labels: {}, project: null, env: { LONGSHORE_APPLY: 'shop' } } };
  const { error } = await carryOut(work, planOf(wanted, { ...empty, containers: new Map([['web', marked]]) }).steps);
  t.equal(error, undefined);
  t.same(requests(), [`PUT ${containers}/id-of-web/spec`]);
  t.match(asked, [{ headers: { 'if-match': '"1"' } }]);
  const body = JSON.parse(asked[0]?.body ?? '') as object;
  t.match(body, { labels: { team: 'a' }, project: 'shop', env: {}, desired: 'running' });
});

t.test('a run that goes on with the earlier value of a secret is told each time, and not waited for', async (t) => {
  const wanted = wantedIn({
    secrets: { key: { value: 'x' } },
    containers: { job: { image: 'a', policy: { restart: 'never' }, secrets: { env: { KEY: 'key' } } } },
  });
  const found = foundAs(wanted, 'job');
  for (const version of [1, 2]) {
    const { work, requests } = await start(t, {
      [`PUT ${compute}/secrets/key`]: { status: 200, body: { data: { name: 'key', version: 2 } } },
      [`GET ${compute}/secrets`]: { status: 200, body: { data: [{ name: 'key', version: 2, behind: [found.id] }] } },
      [`GET ${compute}/${found.id}/status`]: { status: 200, body: { data: found.status } },
      [`GET ${compute}/${found.id}/wait?until=settled&generation=1&stable_seconds=0&job=true&status=stopped&timeout=1`]:
        {
          status: 200,
          body: { data: { ...found.status, outcome: 'done' } },
        },
    });
    const told: string[] = [];
    const context = { ...work.context, tell: (text: string) => void told.push(text) };
    const steps = planOf(wanted, {
      ...empty,
      secrets: new Map([['key', version]]),
      containers: new Map([['job', found]]),
    }).steps;
    const { done, error } = await carryOut({ ...work, context, isDetached: false }, steps);
    t.equal(error, undefined, requests().join('\n'));
    t.match(done[1], { outcome: 'same' });
    t.ok(
      told.includes('job: still with an earlier value of key: "longshore restart -d job" brings in the current one'),
      told.join('\n'),
    );
  }
});

t.test('a tag is looked at again where the file says so, and what it names decides', async (t) => {
  const file = wantedIn({ containers: { web: { image: 'web' } } });
  const wanted = { ...file, containers: file.containers.map((one) => ({ ...one, isPulled: true })) };
  const path = `${containers}/id-of-web/spec?pull=always`;
  for (const [status, expected, outcome] of [
    [{}, [`PUT ${path}`], 'changed'],
    [{ desired: 'stopped', status: 'stopped' }, [`PUT ${path}`], 'changed'],
    [{ status: 'failed', reason: 'image_not_found' }, [`PUT ${path}`, `POST ${compute}/id-of-web/start`], 'changed'],
    [{ desired: 'stopped', status: 'stopped', reason: 'completed' }, [], 'same'],
  ] as const) {
    const { work, requests } = await start(t);
    const found = { ...empty, containers: new Map([['web', foundAs(file, 'web', status)]]) };
    const { steps } = planOf(wanted, found);
    const { done } = await carryOut(work, steps);
    t.same(requests(), expected);
    t.match(done, [{ outcome }]);
  }
  const created = await start(t);
  await carryOut(created.work, planOf(wanted, empty).steps);
  t.same(created.requests(), [`POST ${containers}?pull=always`]);

  const found = { ...empty, containers: new Map([['web', foundAs(file, 'web')]]) };
  const { steps } = planOf(wanted, found);
  t.match(planText({ steps }), /^\? container web {2}\(its tag is looked at again; the same image changes nothing\)\n/);
  t.equal(valueOf([{ step: steps[0]!, outcome: 'left' }], true).changes, 0, 'nothing for certain');
  const one = found.containers.get('web')!;
  for (const [unmoved, outcome] of [
    [true, 'same'],
    [undefined, 'changed'],
  ] as const) {
    const view = { ...one.status, generation: 2, update: { phase: 'done', unmoved, from: {}, to: {} } };
    const { work } = await start(t, {
      [`PUT ${path}`]: { status: 200, body: { data: {} } },
      [`GET ${compute}/id-of-web/status`]: { status: 200, body: { data: view } },
      [`GET ${compute}/id-of-web/wait?until=settled&generation=2&stable_seconds=0&job=false&timeout=1`]: {
        status: 200,
        body: { data: { ...view, outcome: 'done' } },
      },
    });
    const { done, error } = await carryOut({ ...work, isDetached: false }, steps);
    t.equal(error, undefined);
    t.match(done, [{ outcome }]);
  }
});

t.test('one that has failed is started again, changed or not', async (t) => {
  const wanted = wantedIn({ containers: { web: { image: 'web' } } });
  const before = wantedIn({ containers: { web: { image: 'web', labels: { team: 'a' } } } });
  for (const [declared, expected] of [
    [wanted, [`POST ${compute}/id-of-web/start`]],
    [before, [`PUT ${containers}/id-of-web/spec`, `POST ${compute}/id-of-web/start`]],
  ] as const) {
    const { work, requests } = await start(t);
    const failed = foundAs(declared, 'web', { status: 'failed', reason: 'image_not_found' });
    await carryOut(work, planOf(wanted, { ...empty, containers: new Map([['web', failed]]) }).steps);
    t.same(requests(), expected);
  }
});

t.test('a refusal of the server is a fault of the file, and the effects of a write are shown before', async (t) => {
  const before = wantedIn({ containers: { web: { image: 'web:1' }, db: { image: 'db:1' }, kept: { image: 'a' } } });
  const wanted = wantedIn({
    secrets: { fresh: { value: 'x' } },
    containers: {
      web: { image: 'web:2' },
      db: { image: 'db:2', process: { command: ['a'] } },
      kept: { image: 'a' },
      big: { image: 'big' },
      later: { image: 'b', secrets: { env: { A: 'fresh' } } },
    },
  });
  const found = {
    ...empty,
    containers: new Map(['web', 'db', 'kept'].map((name) => [name, foundAs(before, name)] as const)),
  };
  const answers = {
    [`PUT ${containers}/id-of-web/spec?dry_run=true`]: {
      status: 200,
      body: { data: {}, plan: { action: 'change', changed: ['image'] } },
    },
    [`PUT ${containers}/id-of-db/spec?dry_run=true`]: {
      status: 422,
      body: { error: 'invalid', details: { 'process.command': ['must be at most 256 strings'] } },
    },
    [`POST ${containers}?dry_run=true`]: {
      status: 403,
      body: { error: 'over_quota', detail: { dimension: 'mem_bytes', requested: 2, max: 1 } },
    },
  };
  const { work, requests } = await start(t, answers);
  const plan = await foreseen(work.context, planOf(wanted, found), found);
  t.same(requests().toSorted(), Object.keys(answers).toSorted(), 'what has a new secret can not be tried');
  t.match(plan.faults.map(({ field, message }) => `${field}: ${message}`).toSorted(), [
    /^containers\.big: over quota: mem_bytes would be 2 B of 1 B/,
    /^containers\.db\.process\.command: must be at most/,
  ]);
  t.match(plan.steps, [{}, { name: 'web', isReplaced: false }, { name: 'db', isReplaced: undefined }, {}, {}, {}]);
  const reading = { status: 403, body: { error: 'forbidden', detail: { scope: 'deploy' } } };
  const mayRead = await start(t, Object.fromEntries(Object.keys(answers).map((request) => [request, reading])));
  t.same((await foreseen(mayRead.work.context, planOf(wanted, found), found)).faults, []);
});

t.test('a change that takes a container to another host says so, and what stays behind', async (t) => {
  const file = (mem_limit: string) => wantedIn({ containers: { web: { image: 'web', mem_limit } } });
  const found: Found = { ...empty, containers: new Map([['web', foundAs(file('64m'), 'web')]]) };
  for (const [volumes, text] of [
    [['/data', '/b'], 'leaves h1 for h2, and nothing that it wrote goes along: its data in /data, /b stays on h1'],
    [[], 'leaves h1 for h2, and nothing that it wrote goes along'],
  ] as const) {
    const move = { from: 'h1', to: 'h2', volumes };
    const { work } = await start(t, {
      [`PUT ${containers}/id-of-web/spec?dry_run=true`]: {
        status: 200,
        body: { data: {}, plan: { action: 'replace', changed: ['mem_limit'], move } },
      },
    });
    const plan = await foreseen(work.context, planOf(file('4g'), found), found);
    t.ok(planText(plan).includes(`\n  ! ${text}\n`), planText(plan));
    t.match(valueOf([{ step: plan.steps[0]!, outcome: 'left' }], true).steps, [{ move }]);
  }
});

t.test('a change that somebody else has made is not overwritten', async (t) => {
  const refused: Scripted = { status: 412, body: { error: 'precondition_failed' } };
  const { work, asked } = await start(t, { [`PUT ${containers}/id-of-web/spec`]: refused });
  const before = wantedIn({ containers: { web: { image: 'web:1' } } });
  const wanted = wantedIn({ containers: { web: { image: 'web:2' }, db: { image: 'db' } } });
  const found: Found = { ...empty, containers: new Map([['web', foundAs(before, 'web')]]) };
  const { done, error } = await carryOut(work, planOf(wanted, found).steps);
  t.match(error, { message: 'somebody else has changed web meanwhile: look at it, and run this again' });
  t.same(
    done.map(({ step, outcome }) => `${step.name} ${outcome}`),
    ['web failed', 'db left'],
  );
  t.match(asked, [{ method: 'PUT', headers: { 'if-match': '"1"' } }]);
});

t.test('after Ctrl-C no step begins', async (t) => {
  const { work, requests } = await start(t, {}, AbortSignal.abort());
  const { done, error } = await carryOut(work, planOf(wantedIn({ containers: { web: { image: 'a' } } }), empty).steps);
  t.match(error, { name: 'InterruptedError' });
  t.match(done, [{ outcome: 'left' }]);
  t.same(requests(), []);
});

t.test('a resource that is gone needs no removal; one that is in use ends the work', async (t) => {
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
