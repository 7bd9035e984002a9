/** The command line as people type it, against all of Longshore. */
import { randomBytes } from 'node:crypto';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../support/folder.ts';
import { commandLine, imageOf, type Options } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(900_000);
t.test('the command line', async (t) => {
  const rig = await sharedStack(t);
  const { config, longshore, onTerminal } = commandLine(t);
  const { token } = await rig.client(rig.tenant('acme'));
  const ok = async (args: readonly string[], options?: Options): Promise<string> => {
    const { code, out, err } = await longshore(args, options);
    t.equal(code, 0, `${args.join(' ')}: ${err}`);
    return out;
  };
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await ok([...args, '--json'])) as T;

  await t.test('signing in, and who one is', async (t) => {
    t.match(await longshore(['ps']), { code: 1, err: /no server is known: sign in with "longshore login/ });
    t.match(await longshore(['login', '--server', 'ftp://x'], { input: token }), {
      code: 1,
      err: /not the URL of a server/,
    });
    t.match(await longshore(['login', '--server', rig.baseUrl], { input: 'words' }), {
      code: 1,
      err: /is not a token/,
    });
    const forged = `${token.slice(0, -6)}AAAAAA`;
    t.match(await longshore(['login', '--server', rig.baseUrl], { input: forged }), {
      code: 1,
      err: /refuses the token/,
    });
    t.match(
      await ok(['login', '--server', rig.baseUrl, '--profile', 'here'], { input: `${token}\n` }),
      /as profile "here"/,
    );
    t.equal(statSync(config).mode & 0o777, 0o600);
    t.match(await json('whoami'), { server: rig.baseUrl, tenant: rig.tenant('acme') });
    t.match(await json('profile', 'ls'), [{ name: 'here', current: true }]);
    t.match(await longshore(['ps', '--server', 'http://127.0.0.1:1']), {
      code: 1,
      err: /no token for http:\/\/127.0.0.1:1/,
    });
    t.match(await longshore(['ps', '--profile', 'there']), { code: 1, err: /no profile "there"/ });
  });

  await t.test('wrong words are refused, with the right ones', async (t) => {
    t.match(await longshore(['pss']), { code: 2, err: /unknown command 'pss'\n\(Did you mean ps\?\)/ });
    t.match(await longshore(['ps', '--jsn']), { code: 2, err: /unknown option '--jsn'\n\(Did you mean --json\?\)/ });
    t.match(await longshore(['run']), { code: 2, err: /missing required argument 'image'/ });
    t.match(await longshore(['run', 'web:']), { code: 2, err: /is not an image/ });
    t.match(await longshore(['wait', 'web', 'runing']), { code: 2, err: /Allowed choices/ });
    t.match(await longshore(['forward', 'web', '0:99999']), { code: 2, err: /LOCAL:REMOTE/ });
  });

  await t.test('a container: run, look, change, remove', async (t) => {
    await ok(['secret', 'set', 'db'], { input: 'correct horse\n' });
    const args = [
      '--name',
      'web',
      '-p',
      '8080',
      '-e',
      'GREETING=hi',
      '--cpu',
      '0.2',
      '-m',
      '32m',
      '--restart',
      'on_failure',
    ];
    const uses = ['--secret', 'DB=db', '--secret-file', '/run/db=db', '--health-http', '8080'];
    const made = await longshore(['run', imageOf(rig), ...args, ...uses]);
    t.match(made, {
      code: 0,
      out: /8080\/tcp at 127\.0\.0\.1:\d+\n$/,
      err: /^web: .*\n(?:web: .*\n)*web: running(, update verifying)?\n$/,
    });
    t.match(await ok(['ps']), /^NAME +ID +IMAGE +STATUS +PORTS +HOST +AGE\nweb .* running .*->8080\/tcp /);
    t.match(await json('inspect', 'web'), {
      container: { env: { GREETING: 'hi' } },
      policy: { restart: 'on_failure' },
    });
    const [{ id } = { id: '' }] = await json<{ id: string }[]>('ps');
    t.match(await json('inspect', id.slice(0, 18)), { container: { name: 'web' } }, 'by the beginning of its id');
    t.match(await ok(['describe', id.slice(-8)]), /^Name: +web\n[^]*\nHealth: +healthy: http 8080\/,/, 'or its end');
    t.match(await ok(['port', 'web', '8080']), /^127\.0\.0\.1:\d+\n$/);
    t.match(await ok(['exec', 'web', 'sh', '-c', 'echo $DB; cat /run/db']), /^correct horse\ncorrect horse$/);
    await eventually(
      'a line of its log',
      () => ok(['logs', 'web']),
      (text) => text.includes('Ahoy'),
    );
    t.match(await ok(['stats']), /^NAME +CPU +MEMORY/);
    t.match(await longshore(['update', 'web', '-e', 'GREETING=bye', '--unset', 'NONE']), {
      code: 0,
      err: /web: running(, update verifying)?\n$/,
    });
    await ok(['update', 'web', '--secret', 'PASSWORD=db', '--unset', 'DB', '--unset', '/run/db', '-m', '48MiB']);
    t.equal(await ok(['exec', 'web', 'sh', '-c', 'echo "$DB-$PASSWORD"; test ! -e /run/db']), '-correct horse\n');
    t.match(await longshore(['secret', 'rm', 'db']), { code: 1, err: /it is used by web: / });
    t.match(await longshore(['update', 'web', '--secret', 'PASSWORD=db', '--unset', '/run/none']), { code: 0 });
    t.match(await json('inspect', 'web'), { secrets: { env: { PASSWORD: 'db' }, files: {} } });
    t.match(await longshore(['update', 'web', '-e', 'GREETING=no', '--secret', 'A=none']), {
      code: 1,
      err: /secrets\.env\.A "none" is not a secret that you have/,
    });
    await ok(['update', 'web', '-e', 'PASSWORD=plain']);
    await ok(['update', 'web', '--unset', 'PASSWORD']);
    t.match(await json('inspect', 'web'), { container: { env: { GREETING: 'bye', PASSWORD: undefined } } });
    t.equal(await ok(['exec', 'web', '--', 'sh', '-c', 'echo "$GREETING-$PASSWORD"']), 'bye-\n');
    t.match(await longshore(['exec', 'web', '--']), { code: 2, err: /give a command/ });
    t.match(await longshore(['forward', 'web', '0:8080', '--address', '']), { code: 2, err: /an address of this/ });
    t.match(await longshore(['update', 'web', '--stop-grace', '2', '--health-retries', '5']), { code: 0 });
    t.match(await longshore(['policy', 'set', 'web', 'stop_signal=SIGINT']), {
      code: 0,
      err: 'stop_signal: "SIGTERM" → "SIGINT"\n',
    });
    t.match(await json('policy', 'get', 'web'), {
      restart: 'on_failure',
      stop_grace_seconds: 2,
      stop_signal: 'SIGINT',
      health: { http: { port: 8080, path: '/' }, retries: 5 },
    });
    t.match(await longshore(['update', 'web']), { code: 2, err: /nothing to change/ });
    t.match(await longshore(['update', 'web', 'nginx:2']), { code: 2, err: /"nginx:2": a command follows --, and a/ });
    t.match(await longshore(['update', 'web', '--image', `${imageOf(rig)}-none`]), {
      code: 1,
      err: /web was rolled back: image_not_found \(/,
    });
    t.match(await longshore(['run', imageOf(rig), '--name', 'web']), { code: 1, err: /name has already been taken/ });
    t.match(await ok(['events', 'web']), / web update_failed /);
    t.match(await ok(['quota']), /containers +1 +/);
    await ok(['restart', 'web']);
    await ok(['stop', 'web']);
    t.match(await json('inspect', 'web'), { status: { status: 'stopped' } });
    t.match(await longshore(['forward', 'web', '0:8080']), { code: 1, err: /web is stopped: start it with/ });
    t.match(await longshore(['wait', 'web']), { code: 1, err: /web is stopped.*; see "longshore logs web"/ });
    t.match(await longshore(['wait', 'web', 'running']), { code: 1, err: /It can't become running by itself/ });
    t.match(await longshore(['rm', 'web', 'other']), { code: 1, out: 'web\n', err: /there is no container "other"/ });
    t.same(await json('ps'), []);
  });

  await t.test('a container runs what its command says', async (t) => {
    const settings = ['--user', '1000', '-w', '/tmp', '--tmpfs', '/scratch:size=1m', '--ulimit', 'nofile=64:128'];
    const shape = ['--name', 'job', '-m', '32m', '--restart', 'never', '--init', '--read-only', ...settings];
    const script = 'echo "$(id -u) $(pwd) $(ulimit -n)"; touch /scratch/a; touch /a || cat /proc/1/comm';
    t.match(await longshore(['run', imageOf(rig), ...shape, '--', 'sh', '-c', script]), { code: 0 });
    const line = await eventually(
      'its lines',
      () => ok(['logs', 'job']),
      (text) => text.includes('init'),
    );
    t.match(line, /1000 \/tmp 64\n[^]*-init\n/, 'nothing could be written');
    const processOf = async () => (await json<{ process: object }>('inspect', 'job')).process;
    const declared = { command: ['sh', '-c', script], user: '1000', working_dir: '/tmp', init: true, read_only: true };
    t.match(await processOf(), { ...declared, tmpfs: { '/scratch': '1m' }, ulimits: { nofile: '64:128' } });
    const { generation } = (await json<{ status: { generation: number } }>('inspect', 'job')).status;
    await ok(['update', 'job', '-d', '-e', 'A=1', '--reset', 'read-only', '--reset', 'init', '--', 'echo', 'again']);
    t.same(await processOf(), {
      command: ['echo', 'again'],
      user: '1000',
      working_dir: '/tmp',
      tmpfs: { '/scratch': '1m' },
      ulimits: { nofile: '64:128' },
    });
    t.match(await json('inspect', 'job'), { status: { generation: generation + 1 } }, 'one write');
    t.match(await longshore(['update', 'job', '-d', '--user', '1000']), { code: 0, err: /job: nothing changed/ });
    t.match(await longshore(['run', imageOf(rig), 'sh', '-c', 'date']), {
      code: 2,
      err: /unknown option '-c'\n\(The command of a container follows --/,
    });
    t.match(await longshore(['run', imageOf(rig), '--name', 'bad', '--ulimit', 'core=1']), {
      code: 1,
      err: /process\.ulimits\.core can't be set/,
    });
    await ok(['rm', 'job']);
  });

  await t.test('a container that could not be declared is not left behind', async (t) => {
    t.match(await longshore(['run', imageOf(rig), '--name', 'half', '--secret', 'A=none']), {
      code: 1,
      err: /secrets\.env\.A "none" is not a secret that you have/,
    });
    t.same(await json('ps'), []);
  });

  await t.test('a job: its log, its exit code, and nothing left', async (t) => {
    const script = 'echo one; echo two >&2; exit 3';
    const ran = await longshore(['run', '--job', imageOf(rig), '--name', 'job', '--', 'sh', '-c', script]);
    t.match(ran, { code: 3, out: 'one\n', err: /^two$/m });
    t.same(await json('ps'), []);
  });

  await t.test('streams and sessions', async (t) => {
    await ok(['run', imageOf(rig), '--name', 'web', '-p', '8080', '-m', '32m', '--label', 'team=shop']);
    const after =
      (lines: number): NonNullable<Options['watch']> =>
      ({ out }, interrupt) => {
        if (out.split('\n').length > lines) interrupt();
      };
    const followed = await longshore(['logs', '-f', 'web'], { watch: after(4) });
    t.match(followed, { code: 130, err: '' });
    const linesOf = (text: string): string[] => text.split('\n').slice(0, -1);
    const all = linesOf(await ok(['logs', 'web', '-n', 'all']));
    t.match(all, [/Ahoy/]);
    t.same(linesOf(await ok(['logs', 'web', '--tail', '1'])).length, 1);
    t.same(linesOf(await ok(['logs', 'web', '--since', '1h', '--grep', 'Ahoy'])), [
      all.find((line) => /Ahoy/.test(line)),
    ]);
    t.equal(await ok(['logs', 'web', '--until', '1h']), '');
    t.match(linesOf(await ok(['logs', 'web', 'web', '-n', '1'])), [/^web \| /, /^web \| /]);
    t.match(linesOf(await ok(['logs', '-l', 'team=shop', '-l', 'none', '--grep', 'Ahoy'])), [/^web \| .*Ahoy/]);
    t.equal(await ok(['logs', '--project', 'none']), '');
    t.match(await longshore(['logs', '-f', '-l', 'team', '-n', '2'], { watch: after(2) }), { code: 130, out: /^web/ });
    t.match(await longshore(['logs', '-f', '--project', 'none']), { code: 1, err: /no container matches/ });
    for (const wrong of [[], ['web', '-l', 'team']])
      t.match(await longshore(['logs', ...wrong]), { code: 2, err: /name containers, or choose them by --label/ });
    t.match(await ok(['events', 'web', '-n', '1', '--type', 'created']), /web created/);
    const grepped = await longshore(['logs', '-f', 'web', '--grep', 'line', '-n', '2'], { watch: after(3) });
    t.match(grepped, { code: 130, err: '' });
    t.ok(linesOf(grepped.out).every((line) => line.includes('line ')));
    t.match(await longshore(['logs', '-f', 'web', '--until', '1h']), { code: 2, err: /leave out --until/ });
    const watched = await longshore(['stats', '-f', 'web', '--json'], { watch: after(2) });
    t.match(JSON.parse(watched.out.split('\n')[0] ?? ''), { pids: Number });
    const streams = await longshore(['exec', 'web', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
    t.match(streams, { code: 7, out: 'out\n', err: 'err\n' });
    const trapped = 'trap "exit 9" INT; echo ready; while :; do sleep 0.1; done';
    const signalled = await longshore(['exec', 'web', 'sh', '-c', trapped], {
      watch: ({ out }, interrupt) => {
        if (out.includes('ready')) interrupt();
      },
    });
    t.equal(signalled.code, 9, 'Ctrl-C is for the program in the container');
    const sent = randomBytes(3_000_000);
    const echoed = await longshore(['exec', '-i', 'web', 'cat'], { input: sent });
    t.ok(echoed.bytes.equals(sent), 'more than a window each way');
    const elsewhere = await longshore(['forward', 'web', '0:8080', '--address', '192.0.2.1']);
    t.match(elsewhere, { code: 1, err: /192\.0\.2\.1 is no address of this machine/ });
    t.match(await longshore(['exec', 'nobody', 'ls']), { code: 1, err: /there is no container/ });
    const typed = await onTerminal(
      ['exec', '-it', 'web', 'sh'],
      [
        // The size follows the start: a quick prompt comes before it.
        [/[#$] /, 'until stty size; do sleep 0.1; done\n'],
        [/31 97/, 'exit 5\n'],
      ],
    );
    t.match(typed.out, /31 97/, 'the size of the terminal');
    t.equal(typed.code, 5);
    const body = { text: '' };
    const forwarded = await longshore(['forward', 'web', '0:8080', '0:9999'], {
      watch: ({ err }, interrupt) => {
        const [, address] = /^(127\.0\.0\.1:\d+) is port 8080/.exec(err) ?? [];
        if (address === undefined || body.text !== '' || !err.includes('port 9999 of web is not open yet')) return;
        body.text = 'asked';
        void fetch(`http://${address}/`)
          .then(async (answer) => (body.text = await answer.text()))
          .finally(interrupt);
      },
    });
    t.match(body.text, /Ahoy/);
    t.equal(forwarded.code, 0);
  });

  await t.test('keys, registries, and an operator', async (t) => {
    const made = await longshore(['token', 'create', 'ci', '--scope', 'read']);
    t.match(made, { code: 0, err: /shown only once/ });
    const env = { LONGSHORE_SERVER: rig.baseUrl, LONGSHORE_TOKEN: made.out.trim() };
    t.match(await longshore(['ps'], { env }), { code: 0 });
    t.match(await longshore(['rm', 'web'], { env }), { code: 1, err: /forbidden\nThe token lacks the scope deploy/ });
    t.match(await longshore(['token', 'rm', 'other']), { code: 1, err: /there is no token "other"/ });
    await ok(['token', 'rm', 'ci']);
    t.match(await longshore(['ps'], { env }), { code: 1, err: /Sign in with/ });
    const file = join(temporaryFolder(t), 'password');
    writeFileSync(file, 'secret\n');
    await ok(['registry', 'login', 'registry.example.com', '-u', 'ci', '--password-file', file]);
    t.match(await json('registry', 'ls'), [{ host: 'registry.example.com', username: 'ci' }]);
    await ok(['registry', 'logout', 'registry.example.com']);
    t.match(await longshore(['registry', 'logout', 'registry.example.com']), {
      code: 1,
      err: /there is no registry "registry.example.com": "longshore registry ls"/,
    });
    const address = await longshore(['registry', 'login', 'https://r.example', '-u', 'ci', '--password-file', file]);
    t.match(address, { code: 2, err: /name its host/ });
    t.match(await longshore(['host', 'ls']), { code: 0, out: /^HOST +REGION\n/ }, 'those of its regions');
    t.match(await longshore(['host', 'cordon', 'h1']), { code: 1, err: /lacks the scope operator/ });
    const operator = { LONGSHORE_SERVER: rig.baseUrl, LONGSHORE_TOKEN: (await rig.client('ops', 'operator')).token };
    t.match(await longshore(['host', 'ls'], { env: operator }), { code: 0, out: /^HOST +REGION +STATUS/ });
    t.match(await longshore(['host', 'cordon', 'h1'], { env: operator }), { code: 0, out: 'h1\n' });
    t.match(await longshore(['host', 'uncordon', 'h1'], { env: operator }), { code: 0 });
    t.match(await longshore(['host', 'join-token', 'h2'], { env: operator }), { code: 0, out: /\S{20,}\n/ });
    const { id } = (await json<{ container: { id: string } }>('inspect', 'web')).container;
    await ok(['rm', 'web']);
    t.match(await longshore(['logs', 'web', '-n', 'all']), {
      code: 0,
      out: /Ahoy/,
      err: /web was removed at .*; its id was /,
    });
    t.match(await ok(['logs', id, '-n', 'all']), /Ahoy/);
    t.match(await ok(['events', id]), / removed/);
    t.match(await longshore(['events', 'nobody']), { code: 1, err: /there is no container "nobody"/ });
    t.match(await longshore(['logout'], { env: { LONGSHORE_TOKEN: token } }), { code: 0, err: /: unset it/ });
    t.match(await longshore(['ps']), { code: 1, err: /no server is known/ });
  });
});
