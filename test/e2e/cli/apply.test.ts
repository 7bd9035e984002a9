/** `longshore apply` against all of Longshore: docs/apply.md word for word, and what goes wrong. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { pushDemoImage } from '../../../dev/servers/registry.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { commandLine, imageOf, type Options } from '../support/command-line.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(1_200_000);

const page = readFileSync(join(repositoryRoot, 'docs', 'apply.md'), 'utf8');
const example = /```yaml\n(# longshore\.yml\n[^]*?)```/.exec(page)?.[1] ?? '';

interface Status {
  readonly generation: number;
  readonly update?: { readonly phase: string };
}

interface Inspected {
  readonly container: { readonly id: string; readonly env: Readonly<Record<string, string>> };
  readonly status: Status;
  readonly policy: unknown;
}

interface Applied {
  readonly changes: number;
  readonly steps: readonly { readonly kind: string; readonly name: string; readonly outcome?: string }[];
}

t.test('apply', async (t) => {
  const rig = await sharedStack(t);
  await pushDemoImage(rig.image.registry, '2');
  const operator = await rig.client('ops', 'operator');
  const network = { name: 'office', endpoint: 'vpn.example.com', ipv4_pool: '10.86.0.0/22', tenants: null };
  t.equal((await operator.call('POST', '/api/v2/operator/networks', network)).status, 201);
  const { longshore, onTerminal } = commandLine(t);
  const folder = temporaryFolder(t);
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const file = write('longshore.yml', example);
  write('tls.key', 'a key\n');
  const { token } = await rig.client(rig.tenant('acme'));
  const shell = {
    LONGSHORE_SERVER: rig.baseUrl,
    LONGSHORE_TOKEN: token,
    REGISTRY: rig.image.registry,
    REGISTRY_PASSWORD: 'of ci',
    DB_PASSWORD: 'first',
  };
  const run = (args: readonly string[], options: Options = {}) =>
    longshore(args, { ...options, env: { ...shell, ...options.env } });
  const ok = async (args: readonly string[], options?: Options): Promise<string> => {
    const { code, out, err } = await run(args, options);
    t.equal(code, 0, `${args.join(' ')}: ${err}`);
    return out;
  };
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await ok([...args, '--json'])) as T;
  const outcomes = ({ steps }: Applied): string[] => steps.map(({ name, outcome }) => `${name} ${outcome ?? ''}`);

  await t.test('the example of the documentation', async (t) => {
    t.match(await ok(['apply', '-f', file, '--dry-run']), /\+ container web\n {4}image: .*\n[^]*Plan: 6 to create\./);
    t.same(await json('ps'), [], 'a dry run changes nothing');
    t.match(await run(['apply', '-f', file]), { code: 0, out: /Done: .*container web.* changed/, err: /web: running/ });
    const web = await json<Inspected>('inspect', 'web');
    t.same(web.container.env, { GREETING: 'hello', LEVEL: '1.10' });
    t.match(web.status, { project: 'shop' });
    t.match(web.policy, { restart: 'on_failure', health: { http: { port: 8080, path: '/' }, interval: 1 } });
    t.equal(await ok(['exec', 'web', 'sh', '-c', 'cat /run/tls.key; stat -c %a /run/tls.key']), 'a key\n400\n');
    t.equal(await ok(['exec', 'db', 'sh', '-c', 'echo $PASSWORD']), 'first\n');
  });

  await t.test('again, it changes nothing', async (t) => {
    const before = await json<Inspected>('inspect', 'web');
    t.match(await ok(['apply', '-f', file]), /Done: nothing has changed\.\n$/);
    const after = await json<Inspected>('inspect', 'web');
    t.equal(after.status.generation, before.status.generation);
    t.equal(after.container.id, before.container.id);
  });

  await t.test('one field of one container', async (t) => {
    const before = await json<Inspected>('inspect', 'db');
    write('longshore.yml', example.replace('GREETING: hello', 'GREETING: bye'));
    t.match(await ok(['apply', '-f', file]), /~ container web\n {4}env\.GREETING: hello → bye\n[^?~+-]*= peer/);
    t.equal((await json<Inspected>('inspect', 'db')).status.generation, before.status.generation);
    t.match((await json<Inspected>('inspect', 'web')).container.env, { GREETING: 'bye' });
  });

  await t.test('another value of a secret rolls what uses it', async (t) => {
    const applied = await run(['apply', '-f', file, '--json'], { env: { DB_PASSWORD: 'second' } });
    t.equal(applied.code, 0, applied.err);
    t.same(outcomes(JSON.parse(applied.out) as Applied), [
      'registry.example.com same',
      'db-password changed',
      'tls-key same',
      'db changed',
      'web same',
      'ada-phone same',
    ]);
    t.equal(await ok(['exec', 'db', 'sh', '-c', 'echo $PASSWORD']), 'second\n');
    shell.DB_PASSWORD = 'second';
  });

  await t.test('a failure ends it, and the same command goes on', async (t) => {
    const broken = example.replace('longshore/demo:1\n    ports', 'longshore/demo:none\n    ports');
    const failing = write('longshore.yml', broken.replace('ada-phone', 'ada-laptop'));
    const failed = await run(['apply', '-f', failing]);
    t.match(failed, { code: 1, err: /web was rolled back: image_not_found \(/ });
    t.match(failed.err, /Stopped at container web\. Done: .*container db\. Not begun: peer ada-laptop\./);
    write('longshore.yml', example.replace('longshore/demo:1\n    ports', 'longshore/demo:2\n    ports'));
    t.match(await ok(['apply', '-f', file]), /image: .*demo:1 → .*demo:2/);
  });

  await t.test('faults are found before anything is changed', async (t) => {
    const other = write(
      'other.yml',
      'name: other\ncontainers:\n  web:\n    image: web\n    secrets: {env: {A: none}}\n',
    );
    const refused = await run(['apply', '-f', other]);
    t.match(refused, { code: 1, err: /other\.yml:5:\d+: containers\.web\.secrets\.env\.A: "none" is not a secret/ });
    t.match(refused.err, /other\.yml:3:3: containers\.web: "web" belongs to shop, not to other: choose another name/);
    const wrong = 'containers: {web: {imge: web}}';
    t.match(await run(['apply', '-f', '-'], { input: wrong }), {
      code: 1,
      err: /standard input:1:\d+: containers\.web\.imge: is not known: did you mean "image"\?\n[^]*Nothing has been changed/,
    });
    t.match(await run(['apply', '-f', join(folder, 'none.yml')]), { code: 1, err: /none\.yml can't be read/ });
    t.match(await run(['apply', '-f', '-', '--prune'], { input: 'containers: {}' }), {
      code: 1,
      err: /give the file a name/,
    });
  });

  await t.test('interrupted, and again', async (t) => {
    const slow = `
name: slow
containers:
  one: {image: '${imageOf(rig)}', mem_limit: 32m, policy: {stop_grace_seconds: 1}}
  two: {image: '${imageOf(rig)}', mem_limit: 32m, policy: {stop_grace_seconds: 1}}
`;
    const path = write('slow.yml', slow);
    const interrupted = await run(['apply', '-f', path], {
      watch: ({ err }, interrupt) => {
        if (/^one: /m.test(err)) interrupt();
      },
    });
    t.match(interrupted, { code: 130, err: /Stopped.*Not begun: .*container two\. The same command again goes on\./ });
    t.match(await ok(['apply', '-f', path]), /Done: .*container two changed/);
    t.match(await ok(['apply', '-f', path]), /Done: nothing has changed/);
    await ok(['stop', 'one']);
    await ok(['wait', 'one', 'stopped']);
    t.match(await ok(['apply', '-f', path]), /> container one .*\n= container two\n[^]*Done: container one changed/);
  });

  await t.test('containers of development builds of 0.2.0 are taken over once', async (t) => {
    const path = write('mark.yml', `name: mark\ncontainers: {four: {image: '${imageOf(rig)}', mem_limit: 16m}}`);
    const mark = ['-e', 'LONGSHORE_APPLY=mark'];
    await ok(['run', imageOf(rig), '--name', 'four', '--memory', '16m', ...mark]);
    await ok(['run', imageOf(rig), '--name', 'stray', '--memory', '16m', ...mark]);
    const other = write('other.yml', `name: other\ncontainers: {four: {image: '${imageOf(rig)}'}}`);
    t.match(await run(['apply', '-f', other]), { code: 1, err: /"four" belongs to mark, not to other/ });
    t.match(
      await ok(['apply', '-f', path, '--prune', '--yes']),
      /~ container four\n[^]* {4}project: mark\n[^]* {4}env\.LONGSHORE_APPLY: mark → \(none\)\n[^]*- container stray\n/,
    );
    const four = await json<Inspected>('inspect', 'four');
    t.same(four.container.env, {});
    t.match(four.status, { project: 'mark' });
    t.match(await ok(['apply', '-f', path]), /Done: nothing has changed/);
    await ok(['rm', 'four']);
    await ok(['wait', 'four', 'removed']);
  });

  await t.test('containers that have left the file are removed with --prune, and nothing else', async (t) => {
    await ok(['secret', 'set', 'old-password'], { input: 'old' });
    const path = write(
      'slow.yml',
      `name: slow\nremoved: {secrets: [old-password]}\ncontainers: {three: {image: '${imageOf(rig)}'}}`,
    );
    t.match(await ok(['apply', '-f', path, '--dry-run']), /Plan: 1 to create\./);
    t.match(await run(['apply', '-f', path, '--prune']), { code: 2, err: /would remove .*: give --yes/ });
    t.same((await json<{ name: string }[]>('ps')).map(({ name }) => name).sort(), ['db', 'one', 'two', 'web']);
    const refused = await onTerminal(['apply', '-f', path, '--prune'], [[/\[y\/N\]/, 'n\n']], shell);
    t.match(refused, {
      code: 1,
      out: /Remove container (?:one|two), .*secret old-password\? \[y\/N\][^]*Nothing has been changed/,
    });
    t.match(await ok(['apply', '-f', path, '--prune', '--yes']), /Plan: 1 to create, 3 to remove\./);
    t.same((await json<{ name: string }[]>('ps')).map(({ name }) => name).sort(), ['db', 'three', 'web']);
    t.same((await json<{ name: string }[]>('secret', 'ls')).map(({ name }) => name).sort(), ['db-password', 'tls-key']);
    await ok(['rm', 'three']);
  });
});
