import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { namesPolicy, policyFileOf, policyWith, type PolicyOptions } from '../../../cli/tenant/policy.ts';
import { defaultPolicy } from '../../../schemas/api/policy.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { commands, ok, type Answers } from '../support.ts';

const input = { stdin: Readable.from([]), signal: new AbortController().signal };
const of = async (options: PolicyOptions, stored = {}) =>
  policyWith(options, stored, await policyFileOf(options, input));

t.test('options make a policy, and change one', async (t) => {
  t.same(await of({ health: true }), {});
  t.notOk(namesPolicy({ health: true }), 'commander says so without --no-health');
  t.ok(namesPolicy({ health: false }));
  t.ok(namesPolicy({ healthRetries: 2 }));
  t.same(await of({ restart: 'never', stopGrace: 0 }), { restart: 'never', stop_grace_seconds: 0 });
  const http = { port: 8080, path: '/' };
  t.same(await of({ healthHttp: http }), { health: { http } }, 'the default of the API stays');
  t.same(await of({ healthHttp: http, restartUnhealthy: true }), { health: { http, restart_unhealthy: true } });
  t.ok(namesPolicy({ restartUnhealthy: true }));
  t.same(await of({ healthTcp: 1, restart: 'never' }), {
    restart: 'never',
    health: { tcp: { port: 1 } },
  });
  const stored = { ...defaultPolicy, health: { http, interval: 7, restart_unhealthy: false } };
  t.same(await of({ healthInterval: 3 }, stored), { ...stored, health: { ...stored.health, interval: 3 } });
  t.same(
    await of({ healthCommand: 'test -f /up' }, stored),
    { ...stored, health: { command: ['sh', '-c', 'test -f /up'], interval: 7, restart_unhealthy: false } },
    'another check replaces the one before',
  );
  const none = { ...stored, health: { none: true } };
  t.same(await of({ health: false }, stored), none, 'not even that of the image');
  t.same(await of({ healthTcp: 1 }, none), { ...stored, health: { tcp: { port: 1 } } });
  await t.rejects(of({ healthRetries: 1 }, none), /there is no check/);
});

t.test('a file, over which options win', async (t) => {
  const file = join(temporaryFolder(t), 'policy.yml');
  writeFileSync(file, 'restart: on_failure\nstop_grace_seconds: 20\nhealth:\n  tcp: {port: 5432}\n');
  t.same(await of({ policy: file, stopGrace: 5, healthRetries: 9 }), {
    restart: 'on_failure',
    stop_grace_seconds: 5,
    health: { tcp: { port: 5432 }, retries: 9 },
  });
  for (const [text, message] of [
    ['restrat: never\n', 'there is no setting "restrat": did you mean restart?'],
    ['- a\n', `${file} must have settings in it, one KEY: VALUE a line`],
    ['a: [\n', /is neither YAML nor JSON/],
  ] as const) {
    writeFileSync(file, text);
    await t.rejects(of({ policy: file }), { name: 'WrongUsage', message });
  }
});

t.test('options that exclude each other', async (t) => {
  await t.rejects(of({ healthTcp: 1, healthCommand: 'true' }), /give one of/);
  await t.rejects(of({ healthRetries: 1 }), /there is no check/);
});

const web = { id: '01a20000-0000-7000-8000-000000000001', name: 'web', status: 'running' };
const policyPath = `/api/v2/compute/${web.id}/policy`;
const view = (more: object = {}) => ({ ...web, desired: 'running', generation: 1, reason: null, ...more });
const [begun, over] = ['preparing', 'rolled_back'].map((phase) =>
  view({ generation: 2, update: { phase, generation: 2, at: '2026-01-01T00:00:00.000Z', reason: 'unhealthy' } }),
);
const answering = (waited: object, before = view()): Answers => ({
  'GET /api/v2/compute': ok([web]),
  [`GET ${policyPath}`]: ok({ restart: 'always', health: { command: ['true'] } }),
  [`PUT ${policyPath}`]: ok({ restart: 'always' }, { 'longshore-generation': '2' }),
  [`GET /api/v2/compute/${web.id}/status`]: [ok(before), ok(begun)],
  [`GET /api/v2/compute/${web.id}/wait`]: ok(waited),
});

t.test('policy set: another check is waited for, and what became of it is the end', async (t) => {
  const set = ['policy', 'set', 'web'];
  const check = 'health.command=["false"]';
  const wait = `/api/v2/compute/${web.id}/wait?until=settled&generation=2`;
  const run = async (answers: Answers, ...args: string[]) => {
    const { longshore, asked } = await commands(t, answers);
    const end = await longshore(...set, ...args);
    return { ...end, isWaited: asked.some(({ path }) => path.startsWith(wait)) };
  };
  t.match(await run(answering({ ...begun, outcome: 'done' }), check), { code: 0, isWaited: true });
  t.match(await run(answering({ ...over, outcome: 'rolled_back' }), check), {
    code: 1,
    isWaited: true,
    err: /web was rolled back: unhealthy; what else it changed of the policy stays/,
  });
  for (const args of [[check, '--detach'], [check, '--dry-run'], ['restart=never'], ['stop_grace_seconds=1']])
    t.match(await run(answering({}), ...args), { code: 0, isWaited: false }, args.join(' '));
  const stopped = view({ desired: 'stopped', status: 'stopped' });
  t.match(await run(answering({}, stopped), check), { code: 0, isWaited: false }, 'it does not run');
});
