import fc from 'fast-check';
import t from 'tap';
import type { Found, FoundContainer, Peer } from '../../../cli/apply/found.ts';
import { isChange, planOf, type ContainerChange, type Step } from '../../../cli/apply/plan.ts';
import { doneText, planText, stoppedText } from '../../../cli/apply/show.ts';
import { empty, foundAs, peer, wantedIn } from './declared.ts';

const actions = (steps: readonly Step[]): string[] =>
  steps.map(({ action, kind, name }) => `${action} ${kind} ${name}`);

const file = {
  name: 'shop',
  registries: { 'ghcr.io': { username: 'ci', password_from: { file: '~/.docker/x' } } },
  secrets: { key: { value: 'x' }, token: { value_from: { env: 'NPM_TOKEN' } } },
  containers: {
    db: { image: 'postgres:17' },
    web: { image: 'web:1', env: { A: '1' }, ports: [80], secrets: { env: { KEY: 'key' } } },
  },
  peers: { phone: { network: 'office' } },
};

t.test('of nothing, everything is created, in order', (t) => {
  const { steps, faults } = planOf(wantedIn(file), empty);
  t.same(faults, []);
  t.same(actions(steps), [
    'create registry ghcr.io',
    'create secret key',
    'create secret token',
    'create container db',
    'create container web',
    'create peer phone',
  ]);
  t.ok(steps.every(isChange));
  t.equal(
    planText({ steps }),
    `+ registry ghcr.io
    username: ci
    password: from the file ~/.docker/x
+ secret key
    value: as this file has it
+ secret token
    value: from the variable NPM_TOKEN
+ container db
    image: docker.io/library/postgres:17
    cpu_limit: 0.5
    mem_limit: 256m
    project: shop
+ container web
    image: docker.io/library/web:1
    env.A: 1
    ports: 80
    cpu_limit: 0.5
    mem_limit: 256m
    project: shop
    secrets.env.KEY: key
+ peer phone
    network: office
    enabled: true
Plan: 6 to create.`,
  );
  t.end();
});

t.test('a change of a health check names what of it changes', (t) => {
  const checked = (interval: number, http: object) =>
    wantedIn({ containers: { web: { image: 'web', policy: { health: { http, interval } } } } });
  const before = foundAs(checked(10, { port: 8080 }), 'web');
  const found: Found = { ...empty, containers: new Map([['web', before]]) };
  t.equal(
    planText(planOf(checked(1, { port: 8080, path: '/healthz' }), found)),
    `~ container web
    policy.health.http: 8080/ → 8080/healthz
    policy.health.interval: 10 → 1
Plan: 1 to update.`,
  );
  t.end();
});

t.test('the outcome of a plan, as text', (t) => {
  const { steps } = planOf(wantedIn({ containers: file.containers, secrets: { key: file.secrets.key } }), empty);
  const [secret, db, web] = steps;
  if (secret === undefined || db === undefined || web === undefined) throw new Error('three steps');
  t.equal(
    stoppedText([
      { step: secret, outcome: 'same' },
      { step: db, outcome: 'failed' },
      { step: web, outcome: 'left' },
    ]),
    'Stopped at container db. Done: secret key. Not begun: container web. The same command again goes on.',
  );
  t.equal(doneText([{ step: db, outcome: 'same' }]), 'Done: nothing has changed.');
  t.equal(
    doneText([
      { step: db, outcome: 'same' },
      { step: web, outcome: 'changed' },
    ]),
    'Done: container web changed, 1 as before.',
  );
  t.equal(doneText([{ step: web, outcome: 'changed' }]), 'Done: container web changed.');
  t.end();
});

t.test('the action for a container that is as declared', (t) => {
  const wanted = wantedIn({ containers: { web: { image: 'web' } } });
  const of = { generation: 1, last_generation: 1, from: {}, to: {}, at: '2026-11-24T12:00:00.000Z' };
  const update = { ...of, phase: 'preparing', reason: null, message: null } as const;
  const rows: readonly (readonly [Partial<FoundContainer['status']>, Step['action']])[] = [
    [{}, 'keep'],
    [{ status: 'stopped', desired: 'stopped', reason: 'completed' }, 'keep'],
    [{ status: 'stopped', desired: 'stopped' }, 'start'],
    [{ status: 'failed', reason: 'image_not_found' }, 'start'],
    [{ status: 'failed', desired: 'stopped', reason: 'exited' }, 'start'],
    [{ status: 'backoff', reason: 'crash_loop' }, 'wait'],
    [{ status: 'pulling' }, 'wait'],
    [{ status: 'unknown' }, 'wait'],
    [{ update }, 'wait'],
  ];
  for (const [status, action] of rows) {
    const found = { ...empty, containers: new Map([['web', foundAs(wanted, 'web', status)]]) };
    t.same(actions(planOf(wanted, found).steps), [`${action} container web`], JSON.stringify(status));
  }
  const changed = wantedIn({ containers: { web: { image: 'web:2' } } });
  const completed = foundAs(wanted, 'web', { status: 'stopped', desired: 'stopped', reason: 'completed' });
  const { steps } = planOf(changed, { ...empty, containers: new Map([['web', completed]]) });
  t.match(
    steps,
    [{ action: 'update', isRetried: false, body: { image: { tag: '2' }, desired: 'running' } }],
    'a changed job runs again',
  );
  const removing = foundAs(wanted, 'web', { status: 'removing' });
  t.match(planOf(wanted, { ...empty, containers: new Map([['web', removing]]) }).steps, [
    { action: 'create', after: 'id-of-web' },
  ]);
  t.end();
});

t.test('labels are set by themselves, and those that the file does not name are removed', (t) => {
  const before = wantedIn({ containers: { web: { image: 'web', labels: { team: 'shop', tier: 1.1 } } } });
  const found = (status = {}): Found => ({
    ...empty,
    containers: new Map([['web', foundAs(before, 'web', status)]]),
  });
  t.match(planOf(before, found()).steps, [{ action: 'keep', body: undefined }]);
  const wanted = wantedIn({ containers: { web: { image: 'web', labels: { team: 'web' } } } });
  const { steps } = planOf(wanted, found());
  t.match(steps, [{ action: 'update', body: { labels: { team: 'web' } } }]);
  const asked = { ...(steps[0] as ContainerChange), isReplaced: false };
  t.match(planText({ steps: [asked] }), /^~ container web {2}\(nothing starts again\)\n/);
  t.match(planText({ steps }), /~ container web\n {4}labels\.team: shop → web\n {4}labels\.tier: 1\.1 → \(none\)\n/);
  t.match(planText(planOf(before, empty)), /\+ container web\n(.*\n)* {4}labels\.team: shop\n/);
  t.same(planOf(wantedIn({ containers: { web: { image: 'web' } } }), found({ labels: undefined })).faults, []);
  t.end();
});

t.test('one that no file has made is taken over, and gets the project', (t) => {
  const made = wantedIn({ containers: { web: { image: 'web', env: { BY: 'hand' } } } });
  const wanted = wantedIn({ name: 'shop', containers: { web: { image: 'web' } } });
  const { steps, faults } = planOf(wanted, { ...empty, containers: new Map([['web', foundAs(made, 'web')]]) });
  t.same(faults, []);
  t.match(steps, [{ action: 'update', body: { env: {}, project: 'shop' } }]);
  t.match(planText({ steps }), /~ container web\n {4}project: shop\n {4}env\.BY: hand → \(none\)\n/);
  t.end();
});

t.test('one with the variable of a development build of 0.2.0 is taken over once, by its own file alone', (t) => {
  const wanted = wantedIn({ name: 'shop', containers: { web: { image: 'web' } } });
  const made = (project: string | null): Found => {
    const one = foundAs(wanted, 'web');
    const document = { ...one.document, project, env: { LONGSHORE_APPLY: 'shop' } };
    return { ...empty, containers: new Map([['web', { ...one, document }]]) };
  };
  const { steps, faults } = planOf(wanted, made(null));
  t.same(faults, []);
  t.match(steps, [{ action: 'update', body: { env: {}, project: 'shop' } }], 'in one write');
  const other = wantedIn({ name: 'other', containers: { web: { image: 'web' } } });
  t.match(planOf(other, made(null)).faults, [{ message: /belongs to shop, not to other/ }]);
  t.same(planOf(other, made('other')).faults, [], 'the project counts, where there is one');
  t.end();
});

t.test('a step that would fail is a fault of the plan', (t) => {
  const wanted = wantedIn({
    name: 'shop',
    containers: {
      web: { image: 'web', secrets: { env: { A: 'none' }, files: { '/a': { secret: 'gone' } } } },
    },
    peers: { phone: { network: 'office' } },
    removed: { secrets: ['gone'] },
  });
  const other = wantedIn({ name: 'other', containers: { web: { image: 'web' } } });
  const found: Found = {
    ...empty,
    containers: new Map([['web', foundAs(other, 'web')]]),
    secrets: new Map([['gone', 1]]),
    peers: new Map([['phone', peer({ network: 'home' })]]),
  };
  t.match(
    planOf(wanted, found).faults.map(({ field, message }) => `${field}: ${message}`),
    [
      /^containers\.web\.secrets\.env\.A: "none" is not a secret of this file/,
      /^containers\.web\.secrets\.files\.\/a: "gone" is not a secret/,
      /^containers\.web: "web" belongs to other, not to shop: choose another name for it, or for the project \(-p\)$/,
      /^peers\.phone\.network: is in the network home, and can't be moved/,
    ],
  );
  t.end();
});

t.test('a host that the file names is where the container moves to, in the same write', (t) => {
  const file = (web: object) => wantedIn({ name: 'shop', containers: { web: { image: 'web', ...web } } });
  const found = (web: object): Found => ({ ...empty, containers: new Map([['web', foundAs(file(web), 'web')]]) });
  const { steps, faults } = planOf(file({ host_key: 'h2', env: { A: '1' } }), found({}));
  t.same(faults, []);
  t.match(steps, [{ action: 'update', body: { host_key: 'h2', env: { A: '1' } } }]);
  t.match(planText({ steps }), /~ container web\n {4}env\.A: 1\n {4}host_key: h1 → h2\n/);
  t.match(planOf(file({ host_key: 'h1' }), found({})).steps, [{ action: 'keep' }], 'it is there');
  t.match(planOf(file({}), found({})).steps, [{ action: 'keep' }], 'the file leaves the host to the server');
  t.end();
});

t.test('peers: what differs is patched, and the same moment is the same', (t) => {
  const rows = [
    [{ expires_at: '2030-01-01T00:00:00Z' }, { expires_at: '2030-01-01T00:00:00.000Z' }, {}],
    [{ enabled: false }, {}, { enabled: false }],
    [{}, { enabled: false, dns: ['10.0.0.53'] }, { enabled: true, dns: null }],
    [{ routes: ['10.0.0.0/8'] }, { routes: ['10.0.0.0/8'] }, {}],
  ] as const;
  for (const [fields, change, patch] of rows) {
    const { steps } = planOf(wantedIn({ peers: { phone: fields } }), {
      ...empty,
      peers: new Map([['phone', peer(change as Partial<Peer>)]]),
    });
    t.match(steps, [{ patch, action: Object.keys(patch).length === 0 ? 'keep' : 'update' }]);
  }
  t.end();
});

t.test('removals come last: containers, then what the file lists and is there', (t) => {
  const wanted = wantedIn({
    name: 'shop',
    containers: { web: { image: 'web' } },
    removed: { secrets: ['old', 'gone'], registries: ['index.docker.io'], peers: ['phone'] },
  });
  const stray = { id: 'id-of-old', name: 'old' } as Found['strays'][number];
  const found: Found = {
    ...empty,
    containers: new Map([['web', foundAs(wanted, 'web')]]),
    strays: [stray],
    secrets: new Map([['old', 3]]),
    registries: new Map([['docker.io', { host: 'docker.io', username: 'ci', updated_at: null }]]),
    peers: new Map([['phone', peer()]]),
  };
  t.same(actions(planOf(wanted, found).steps), [
    'keep container web',
    'remove container old',
    'remove secret old',
    'remove registry docker.io',
    'remove peer phone',
  ]);
  t.end();
});

const text = fc.string({ maxLength: 8 }).filter((value) => !/[$\0]/.test(value));
const entry = fc.record(
  {
    image: fc.constantFrom(
      'web',
      'web:2',
      'ghcr.io/acme/web:1',
      `web@sha256:${'a'.repeat(64)}`,
      `web:1@sha256:${'b'.repeat(64)}`,
    ),
    env: fc.dictionary(fc.stringMatching(/^[A-Z_]{1,4}$/), text, { maxKeys: 4 }),
    ports: fc.uniqueArray(fc.constantFrom(80, 443, '53/udp'), { maxLength: 3 }),
    process: fc.record(
      {
        command: fc.array(text, { maxLength: 2 }),
        user: fc.constantFrom('0', '1000:1000'),
        tmpfs: fc.dictionary(fc.constantFrom('/tmp', '/run'), fc.constantFrom('1m', '2MiB')),
        init: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
    network: fc.record({ mode: fc.constantFrom('tenant', 'none') }, { requiredKeys: [] }),
    labels: fc.dictionary(fc.constantFrom('team', 'tier'), text),
    cpu_limit: fc.constantFrom('0.5', '1.0'),
    mem_limit: fc.constantFrom('64m', '1g'),
    policy: fc.record(
      {
        restart: fc.constantFrom('always', 'on_failure'),
        stop_signal: fc.constantFrom('SIGINT', 'SIGTERM'),
        health: fc.constantFrom(
          null,
          { http: { port: 80 } },
          { tcp: { port: 80 }, retries: 5 },
          { command: ['a', 'b'] },
        ),
      },
      { requiredKeys: [] },
    ),
    secrets: fc.record(
      {
        env: fc.dictionary(fc.constantFrom('K', 'L'), fc.constantFrom('key', 'other')),
        files: fc.dictionary(
          fc.constantFrom('/a', '/b'),
          fc.record({ secret: fc.constant('key'), mode: fc.nat(0o777) }),
        ),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['image'] },
);

t.test('after a plan is carried out, the next one is empty', (t) => {
  const secrets = { key: { value: 'x' }, other: { value: 'y' } };
  fc.assert(
    fc.property(entry, entry, (before, after) => {
      const earlier = wantedIn({ name: 'shop', secrets, containers: { web: before } });
      const wanted = wantedIn({ name: 'shop', secrets, containers: { web: after } });
      const found = foundAs(earlier, 'web');
      const secretsThere = new Map(Object.keys(secrets).map((name) => [name, 1]));
      const look = (one: FoundContainer) =>
        planOf(wanted, { ...empty, secrets: secretsThere, containers: new Map([['web', one]]) }).steps.at(
          -1,
        ) as ContainerChange;
      const written = { ...found.document, ...look(found).body } as FoundContainer['document'];
      const next = look({ ...found, document: written });
      return next.action === 'keep' && next.body === undefined;
    }),
  );
  t.end();
});

t.test('the process of a container is shown setting by setting, and an empty command is one', (t) => {
  const of = (process: object): ReturnType<typeof wantedIn> =>
    wantedIn({ containers: { web: { image: 'web', process } } });
  const found: Found = { ...empty, containers: new Map([['web', foundAs(of({ user: '1', init: true }), 'web')]]) };
  const { steps } = planOf(of({ command: [], entrypoint: ['a b', 'c'], user: '2', tmpfs: { '/tmp': '1m' } }), found);
  t.equal(
    planText({ steps }),
    `~ container web
    process.entrypoint: ["a b","c"]
    process.command: []
    process.user: 1 → 2
    process.tmpfs./tmp: 1m
    process.init: true → (none)
Plan: 1 to update.`,
  );
  t.end();
});

t.test('fields of a document that this release does not know stay unchanged', (t) => {
  const wanted = wantedIn({ containers: { web: { image: 'web:2' } } });
  const one = foundAs(wantedIn({ containers: { web: { image: 'web:1' } } }), 'web');
  const document = { ...one.document, volumes: { '/data': { volume: 'data' } } };
  const { steps } = planOf(wanted, { ...empty, containers: new Map([['web', { ...one, document }]]) });
  const [{ body }] = steps as [ContainerChange];
  t.match(body, { volumes: document.volumes, image: { tag: '2' } });
  t.notOk('host_key' in body!, 'nor does it move');
  t.notOk('desired' in body!);
  t.end();
});
