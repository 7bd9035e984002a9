import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { namesPolicy, policyFileOf, policyWith, type PolicyOptions } from '../../../cli/tenant/policy.ts';
import { defaultPolicy } from '../../../schemas/api/policy.ts';
import { temporaryFolder } from '../../support/folder.ts';

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

t.test('what does not go together', async (t) => {
  await t.rejects(of({ healthTcp: 1, healthCommand: 'true' }), /give one of/);
  await t.rejects(of({ healthRetries: 1 }), /there is no check/);
});
