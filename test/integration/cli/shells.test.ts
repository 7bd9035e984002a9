/** The completion in real shells; test/cli/completion has more of bash, which every machine has. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run } from '../../../dev/process/run.ts';
import { farEnd } from '../../cli/client/server.ts';
import { commandLine } from '../../e2e/support/command-line.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutTools } from '../../support/tools.ts';

t.setTimeout(600_000);

const deadlineMs = 120_000;
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

/** A folder with `longshore` in it, which knows a server with three containers. */
async function surroundings(t: Test) {
  const data = [{ name: 'web' }, { name: 'worker' }, { name: 'database' }];
  const { url } = await farEnd(t, { status: 200, body: { data } });
  const folder = temporaryFolder(t);
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(join(repositoryRoot, 'dist', 'cli', 'longshore.js'), join(bin, 'longshore'));
  const config = join(folder, 'config.json');
  const claims = Buffer.from('{"sub":"ada"}').toString('base64url');
  const here = { server: url, token: `e30.${claims}.x` };
  const profiles = { '127.0.0.1:80': here, '127.0.0.1:81': here, here };
  writeFileSync(config, JSON.stringify({ current: 'here', profiles }), { mode: 0o600 });
  writeFileSync(join(folder, 'shop.yml'), '');
  const env = (of: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
    PATH: [bin, dirname(process.execPath), of['PATH']].join(':'),
    LD_LIBRARY_PATH: of['LD_LIBRARY_PATH'],
    HOME: folder,
    LONGSHORE_CONFIG: config,
    // On a busy machine.
    LONGSHORE_COMPLETION_TIMEOUT: '1m',
  });
  return { env, folder };
}

/** Resolves to what is offered for a line. */
type Offer = (...words: string[]) => Promise<string[]>;

async function completes(t: Test, offers: Offer): Promise<void> {
  t.same(await offers('whoa'), ['whoami']);
  t.same(await offers('run', '--restart', 'on_'), ['on_failure']);
  t.same(await offers('run', '--restart=on_'), ['--restart=on_failure']);
  t.same(await offers('profile', 'use', '127.0.0.1:8'), ['127.0.0.1:80', '127.0.0.1:81']);
  t.same(await offers('logs', 'w'), ['web', 'worker']);
  t.same(await offers('apply', '-f', 'sho'), ['shop.yml'], 'a file, where nothing else is known');
}

/** The Tab key at a prompt, after these lines; the command runs as it was completed. */
async function completesAtPrompt(
  t: Test,
  command: readonly string[],
  lines: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const { typing } = commandLine(t);
  const ran = await typing(
    command,
    [
      [/[$#%] /, [...lines, "PS1=rea''dy'> '"].join('; ') + '\n'],
      [/ready> /, 'longshore whoa\t'],
      [/longshore whoami/, '\n'],
      [/subject +ada/, 'exit\n'],
    ],
    env,
  );
  t.match(ran, { code: 0, out: /subject +ada/ }, command.join(' '));
}

t.test('bash, at a prompt', async (t) => {
  const { env } = await surroundings(t);
  await completesAtPrompt(t, ['bash', '--norc', '-i'], ['source <(longshore completion bash)'], env(process.env));
});

t.test('zsh, at a prompt', { skip: await skipWithoutTools('zsh') }, async (t) => {
  const tool = await toolHere('zsh');
  const { env } = await surroundings(t);
  const root = join(dirname(tool.path), '..');
  const lines = [
    `module_path+=(${root}/usr/lib/*/zsh/*(N/)); fpath+=(${root}/usr/share/zsh/functions/**/*(N/))`,
    'zmodload zsh/zle; autoload -Uz compinit; compinit -u -D',
    'source <(longshore completion zsh)',
  ];
  await completesAtPrompt(t, [tool.path, '-f', '-i'], lines, env(tool.env));
});

t.test('zsh', { skip: await skipWithoutTools('zsh') }, async (t) => {
  const tool = await toolHere('zsh');
  const { env, folder } = await surroundings(t);
  // Outside of a completion at the prompt, these are for the script to call.
  const script = `
compdef() {}
compadd() { shift; print -rl -- "$@" }
_files() { print -rl -- \${words[CURRENT]}*(N) }
source <(longshore completion zsh)
words=(longshore "$@")
CURRENT=$#words
_longshore`;
  await completes(t, async (...words) => {
    const ran = await run(tool.path, ['-f', '-c', script, 'zsh', ...words], {
      deadlineMs,
      env: env(tool.env),
      cwd: folder,
    });
    t.match(ran, { code: 0, stderr: '' }, words.join(' '));
    return lines(ran.stdout);
  });
});

t.test('fish', { skip: await skipWithoutTools('fish') }, async (t) => {
  const tool = await toolHere('fish');
  const { env, folder } = await surroundings(t);
  const functions = join(dirname(tool.path), '..', 'share', 'fish', 'functions');
  const script = `
set -p fish_function_path ${functions}
longshore completion fish | source
complete -C "longshore $argv"`;
  await completes(t, async (...words) => {
    const ran = await run(tool.path, ['--no-config', '-c', script, ...words], {
      deadlineMs,
      env: env(tool.env),
      cwd: folder,
    });
    t.match(ran, { code: 0, stderr: '' }, words.join(' '));
    return lines(ran.stdout).map((line) => line.split('\t')[0] ?? '');
  });
});
