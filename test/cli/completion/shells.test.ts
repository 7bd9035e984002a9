import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { scripts, shells } from '../../../cli/completion/scripts.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { breaks, farEnd, type Reaction } from '../client/server.ts';

t.setTimeout(600_000);
const run = promisify(execFile);
const program = join(repositoryRoot, 'dist', 'cli', 'longshore.js');

async function signedIn(t: Test, reaction: Reaction) {
  const { url, asked } = await farEnd(t, reaction);
  const config = join(temporaryFolder(t), 'config.json');
  const one = { server: url, token: 'a.b.c' };
  const profiles = { '127.0.0.1:80': one, '127.0.0.1:81': one, other: one };
  writeFileSync(config, JSON.stringify({ current: 'other', profiles }), { mode: 0o600 });
  // On a busy machine an answer takes longer than a person would wait.
  const env = { PATH: process.env['PATH'], LONGSHORE_CONFIG: config, LONGSHORE_COMPLETION_TIMEOUT: '1m' };
  return { env, asked };
}

/** Completions that bash offers for these words, split as its readline splits a line. */
async function offers(t: Test, env: NodeJS.ProcessEnv, ...words: string[]): Promise<string[]> {
  const lines = [
    'longshore() { "$NODE" "$PROGRAM" "$@"; }',
    'source <(longshore completion bash)',
    'COMP_WORDS=(longshore "$@")',
    'COMP_CWORD=$#',
    '_longshore longshore',
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ];
  const { stdout, stderr } = await run('bash', ['--norc', '-c', lines.join('\n'), 'bash', ...words], {
    env: { ...env, NODE: process.execPath, PROGRAM: program },
  });
  t.equal(stderr, '');
  return stdout.split('\n').filter((line) => line !== '');
}

t.test('bash completes commands, values and names', async (t) => {
  const data = [{ name: 'web' }, { name: 'worker' }, { name: 'database' }];
  const { env, asked } = await signedIn(t, { status: 200, body: { data } });
  t.same(await offers(t, env, 'whoa'), ['whoami']);
  t.same(await offers(t, env, 'logs', 'w'), ['web', 'worker']);
  t.match(asked[0], { path: '/api/v2/compute', headers: { authorization: 'Bearer a.b.c' } });
  t.same(await offers(t, env, 'run', '--restart', '=', 'on_'), ['on_failure'], 'bash replaces what follows =');
  t.same(await offers(t, env, 'profile', 'use', '127.0.0.1', ':', '8'), ['80', '81'], 'and what follows :');
  t.same(await offers(t, env, 'rm', ''), ['web', 'worker', 'database']);
});

t.test('without an answer in time, without a sign-in, and with a server that fails: nothing is said', async (t) => {
  const silent: Reaction = () => {};
  for (const reaction of [silent, breaks, { status: 500, body: {} }, { status: 401, body: {} }] as const) {
    const { env: patient } = await signedIn(t, reaction);
    const env = { ...patient, LONGSHORE_COMPLETION_TIMEOUT: reaction === silent ? '100ms' : 'soon' };
    const { stdout, stderr } = await run(process.execPath, [program, '__complete', '--', 'rm', ''], { env });
    t.same([stdout, stderr], ['', '']);
  }
  const env = { LONGSHORE_CONFIG: join(temporaryFolder(t), 'none.json') };
  for (const words of [['rm', ''], ['--nothing', 'x', ''], ['exec', 'web', '-'], []]) {
    const { stdout, stderr } = await run(process.execPath, [program, '__complete', '--', ...words], { env });
    t.equal(stderr, '');
    if (words.length > 0) t.equal(stdout, '');
  }
});

t.test('the script of each shell asks the hidden command', (t) => {
  for (const shell of shells) t.match(scripts[shell], /__complete -- /, shell);
  t.end();
});
