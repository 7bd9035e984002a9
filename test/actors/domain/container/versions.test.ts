/** Declared versions of a container, and rolling back to one of them. */
import t from 'tap';
import { decideRead, decideWrite } from '../../../../actors/domain/decide.ts';
import { observe } from '../../../../actors/domain/container/observe.ts';
import type { ContainerRecord, ContainerVersion } from '../../../../schemas/api/container.ts';
import { defaultPolicy } from '../../../../schemas/api/policy.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { ReportItem } from '../../../../schemas/wire/host.ts';
import { operation, specOf } from '../../support.ts';
import {
  acme,
  apply,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  itemOf,
  observation,
  stateOf,
} from '../../support/records.ts';

const author = { tenant: acme, subject: 'ann', token: 'k1', address: '192.0.2.1' };
const cause = { by: author, action: 'container.update', target: {} };

function world(more: Partial<ContainerRecord> = {}) {
  const spec = { ...specOf('web'), repository: 'web', tag: '1', pull_policy: 'if_not_present' as const };
  const first = container({ spec, ...more });
  const state = stateOf(defaultTenant(acme), first);
  const context = contextOf(fleetOf(fleetHost(h1)));
  let seq = 2;
  const record = (): ContainerRecord => state.tenant(acme).containers.get(first.id)!;
  const ask = <Type extends string>(type: Type) => ({ type, tenant: acme, id: first.id, rid: 'r', budgetMs: 1000 });
  const write = (type: string, fields: object) => {
    const asked = { ...ask(type), op: operation(), cause, ...fields } as never;
    const { reply, changes } = decideWrite(state, asked, context, undefined);
    apply(state, changes);
    return { code: reply.code, body: JSON.parse(String(reply.body) || '{}') as { details?: object; data?: object } };
  };
  return {
    record,
    patch: (patch: object) => write('container.update', { patch }),
    pull: (patch: object = {}) => write('container.update', { patch, pull: 'always' }),
    /** Reports the image that its host has. */
    runs: (digest: string) => {
      const seen = observation('running', { image: { digest, resolved_at: '2026-01-01T00:00:00.000Z' } });
      apply(state, observe(state, h1, 1, itemOf(record(), { observation: seen, seq: ++seq }), context));
    },
    policy: (policy: object) => write('policy.put', { policy: { ...defaultPolicy, ...policy } }),
    stop: () => write('container.stop', {}),
    rollback: (version: number) => write('container.rollback', { version }),
    /** Changes it as an owner of before 0.2.0 did, which kept fields that it did not know. */
    put: (change: Partial<ContainerRecord>) =>
      apply(state, { records: [{ ...record(), ...change }], deletes: [], events: [], effects: [] }),
    tell: (
      phase: NonNullable<ReportItem['update']>['phase'],
      reason: 'crash_loop' | null = null,
      isUnmoved = false,
    ) => {
      const unmoved = isUnmoved ? { unmoved: true as const } : {};
      const update = { since: record().update?.since ?? 0, phase, reason, message: null, ...unmoved };
      const item = itemOf(record(), { observation: observation('running'), seq: ++seq, update });
      apply(state, observe(state, h1, 1, item, context));
    },
    versions: (): ContainerVersion[] => {
      const { reply } = decideRead(state, ask('container.versions'), context);
      return (JSON.parse(String(reply.body)) as { data: ContainerVersion[] }).data;
    },
    tags: function () {
      return this.versions().map(({ version, spec, outcome }) => [version, spec.image.tag, outcome]);
    },
  };
}

t.test('a container that never changed has one version', (t) => {
  const [one, ...others] = world().versions();
  t.same(others, []);
  t.match(one, {
    version: 1,
    by: null,
    outcome: 'done',
    spec: { name: 'web', image: { tag: '1' }, desired: 'running' },
  });
  t.end();
});

t.test('each change is a version, with who made it and what became of it', (t) => {
  const web = world();
  web.patch({ tag: '2' });
  t.same(web.tags(), [
    [2, '2', null],
    [1, '1', 'done'],
  ]);
  t.match(web.versions()[0], { by: { subject: 'ann' }, request_id: 'r', generation: web.record().generation });
  web.tell('done');
  web.policy({ restart: 'never' });
  web.patch({ tag: '2' });
  web.stop();
  t.same(web.tags(), [
    [3, '2', 'done'],
    [2, '2', 'done'],
    [1, '1', 'done'],
  ]);
  t.same(
    web.versions().map(({ spec }) => spec.policy.restart),
    ['never', 'always', 'always'],
  );
  t.end();
});

t.test('a change that another came after, and one that its host took back', (t) => {
  const web = world();
  web.patch({ tag: '2' });
  web.patch({ tag: '3' });
  web.tell('rolled_back', 'crash_loop');
  t.equal(web.record().spec.tag, '1');
  t.same(web.tags(), [
    [3, '3', 'rolled_back'],
    [2, '2', 'superseded'],
    [1, '1', 'done'],
  ]);
  t.equal(web.versions()[0]?.reason, 'crash_loop');
  web.patch({ env: { A: 'b' } });
  t.match(web.versions(), [
    { version: 4, spec: { image: { tag: '1' }, env: { A: 'b' } } },
    { version: 3, outcome: 'rolled_back', reason: 'crash_loop', spec: { image: { tag: '3' }, env: {} } },
    { version: 2, spec: { image: { tag: '2' } } },
    { version: 1, spec: { image: { tag: '1' } } },
  ]);
  t.end();
});

t.test('a roll back declares an earlier version again', (t) => {
  const web = world();
  web.patch({ tag: '2', env: { A: 'b' } });
  web.tell('done');
  web.policy({ stop_grace_seconds: 3 });
  const back = web.rollback(1);
  t.match(back, { code: 'ok', body: { data: { image: { tag: '1' }, env: {}, policy: { stop_grace_seconds: 10 } } } });
  t.match(web.record(), {
    spec: { tag: '1', env: {} },
    update: { phase: 'preparing', previous: { spec: { tag: '2' } } },
  });
  t.match(web.versions()[0], { version: 4, by: { subject: 'ann' }, spec: { image: { tag: '1' } } });
  const { generation } = web.record();
  t.equal(web.rollback(4).code, 'ok');
  t.equal(web.record().generation, generation, 'it is so already');
  t.match(web.rollback(9), { code: 'invalid', body: { details: { version: [/give one of 4, 3, 2, 1/] } } });
  t.end();
});

t.test('a version names secrets, and one whose secret is gone is refused', (t) => {
  const secrets = { env: { DB: { name: 'db', version: 1 } }, files: {} };
  const web = world({ secrets });
  web.put({ secrets: { env: { DB: { name: 'db', version: 2 } }, files: {} } });
  t.equal(web.versions().length, 1, 'another value is no version');
  t.same(web.versions()[0]?.spec.secrets, { env: { DB: 'db' }, files: {} });
  t.match(web.rollback(1), { code: 'invalid', body: { details: { 'secrets.env.DB': [/not a secret/] } } });
  t.end();
});

t.test('the number of versions is bounded', (t) => {
  const web = world();
  for (let tag = 2; tag < 20; tag++) web.patch({ tag: String(tag) });
  t.same(
    web.versions().map(({ version }) => version),
    [19, 18, 17, 16, 15, 14, 13, 12, 11, 10],
  );
  const large = world();
  const env = (fill: string) => ({ A: fill.repeat(10_000) });
  for (const fill of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) large.patch({ env: env(fill) });
  const kept = large.versions();
  t.ok(kept.length > 2 && kept.length < 6, String(kept.length));
  t.ok(Buffer.byteLength(JSON.stringify(large.record().versions)) < limits.versionsBytes + 4096);
  t.equal(kept.at(-1)?.spec.env['A']?.length, 10_000);
  t.end();
});

t.test('a change by an owner that keeps no versions ends the list', (t) => {
  const web = world();
  web.patch({ tag: '2' });
  web.put({ spec: { ...web.record().spec, tag: '7' }, generation: 9 });
  t.match(web.versions(), [{ version: 3, generation: 9, by: null, spec: { image: { tag: '7' } } }]);
  t.equal(web.versions().length, 1);
  web.patch({ tag: '8' });
  t.match(web.versions(), [{ version: 4 }, { version: 3, spec: { image: { tag: '7' } } }]);
  t.end();
});

t.test('a tenant does not see the address of an operator', (t) => {
  const web = world();
  web.patch({ tag: '2' });
  const { versions } = web.record();
  const [newest, ...older] = versions!.list;
  const by = { ...author, tenant: 'operators' as TenantId };
  web.put({ versions: { ...versions!, list: [{ ...newest!, by }, ...older] } });
  t.equal(web.versions()[0]?.by?.address, null);
  t.end();
});

t.test('another look at a tag', (t) => {
  const [one, two] = [`sha256:${'1'.repeat(64)}`, `sha256:${'2'.repeat(64)}`];
  const web = world();
  t.same(web.pull({ digest: one }).body.details, { pull: ['has no tag to look at: the digest decides what runs'] });
  web.runs(one);
  const before = web.record().generation;

  t.equal(web.pull().code, 'ok');
  t.match(web.record(), { generation: before + 1, spec: { repull: before + 1 }, update: { phase: 'preparing' } });
  web.tell('rolled_back', null, true);
  t.match(web.record(), { generation: before + 2, update: { phase: 'done', unmoved: true, reason: null } });
  t.notOk(web.record().spec.repull, 'what runs is declared as before');
  t.notOk(web.record().update?.previous);
  t.same(web.tags(), [
    [2, '1', 'done'],
    [1, '1', 'done'],
  ]);

  web.runs(one);
  web.pull();
  web.patch({ env: { A: '1' } });
  t.ok(web.record().spec.repull, 'a change that comes before its end looks, too');
  web.pull();
  web.tell('done');
  web.runs(two);
  t.same(
    web.versions().map(({ version, digest }) => [version, digest]),
    [
      [5, two],
      [4, undefined],
      [3, undefined],
      [2, one],
      [1, one],
    ],
  );
  web.patch({ env: { A: '2' } });
  t.notOk(web.record().spec.repull, 'the look is over');
  web.tell('done');

  web.rollback(1);
  t.match(web.record().spec, { tag: '1', digest: one }, 'the tag names another image now');
  web.tell('done');
  web.runs(one);
  web.patch({ tag: '2', digest: null });
  web.tell('done');
  web.rollback(6);
  t.match(web.record().spec, { tag: '1', digest: null, env: { A: '2' } }, 'the image of version 6 is not known');
  t.end();
});
