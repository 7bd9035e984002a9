/**
 * Every command of the README and of the quick start works as written. The test types each page
 * into one empty shell beside a fresh `npm start`.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { cacheFolder, repositoryRoot } from '../../../dev/paths.ts';
import { executablesOf } from '../../../dev/fetch/tools.ts';
import { sharedEngine } from '../../support/servers.ts';
import { launch } from './npm-start.ts';

/** Such a block needs root and a second machine; test/e2e/vpn/wireguard.test.ts covers it. */
const isForRoot = (block: string): boolean => /^wg-quick /m.test(block);

/** Input of a recorded session. */
const typedIn = (session: string): string =>
  [...session.matchAll(/^\$ (.*\n)/gm)].map(([, command = '']) => command).join('');

/** All shell commands of a page, in order. */
function commandsOf(page: string): string {
  const text = readFileSync(join(repositoryRoot, page), 'utf8');
  const blocks = [...text.matchAll(/^```(sh|console)\n(.*?)^```$/gms)].map(([, kind, block = '']) =>
    kind === 'console' ? typedIn(block) : block,
  );
  return blocks.filter((block) => !isForRoot(block)).join('');
}

const [curl, node, bash] = executablesOf(['curl', 'node', 'bash'], process.env);
const missing = curl === undefined || node === undefined || bash === undefined;
const skip = missing ? 'curl, node or bash is not in PATH' : false;

t.test('every command of the README and the quick start works', { skip, timeout: 800_000 }, async (t) => {
  // The pages expect `.longshore` in the working directory of the shell.
  const folder = mkdtempSync(join(tmpdir(), 'longshore-readme-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  // As in a checkout.
  mkdirSync(join(folder, 'node_modules', '.bin'), { recursive: true });
  symlinkSync(join(repositoryRoot, 'dist/dev/longshore.js'), join(folder, 'node_modules/.bin/longshore'));
  const started = launch(t, {
    ...process.env,
    DOCKER_HOST: await sharedEngine(t),
    LONGSHORE_STATE: join(folder, '.longshore'),
    LONGSHORE_CACHE: cacheFolder(process.env),
  });
  await started.says('Up after');

  /** The shell stops at a command that fails and at a variable that is not set (`-eu`). */
  const typed = async (page: string): Promise<string> => {
    const shell = promisify(execFile)(bash ?? 'bash', ['-eu', '-s'], {
      cwd: folder,
      env: { HOME: homedir(), PATH: process.env['PATH'], LONGSHORE_CONFIG: join(folder, 'config.json') },
      timeout: 300_000,
    });
    shell.child.stdin?.end(commandsOf(page));
    return (await shell).stdout;
  };

  const readme = await typed('README.md');
  t.match(readme, /^demo +[0-9a-f]{8} +\S+ +(?:running|starting) /m, 'the container of npm start');
  t.match(readme, /8080\/tcp at \S+$/m, 'a container runs');
  t.match(readme, /^hello from \S+$/m, 'a program in it');
  t.match(readme, /^web +\d/m, 'what it uses');
  t.match(readme, /^db-password, version 1$/m, 'a secret');
  t.match(readme, /^phone +[0-9a-f]{8} +/m, 'a peer');
  t.match(readme, / web updated running on local$/m, 'its events');

  const quickStart = await typed('docs/quick-start.md');
  t.match(quickStart, /"status":"running"/);
  t.match(quickStart, /"stream":"std/, 'the log');
  t.match(quickStart, /"http":\{"port":8080,"path":"\/"\}/, 'the policy');
  t.match(
    quickStart,
    /"update":\{"phase":"\w+","generation":\d+,"last_generation":\d+,"from":\{"env":\{\}\},"to":\{"env":\{"GREETING":"hello"\}\}/,
  );
  t.match(quickStart, /"type":"update_requested"/, 'events');
  t.match(quickStart, /"status":"stopped"/);
  t.match(quickStart, /"key":"local"/, 'the host');
  t.match(quickStart, /"name":"office"/, 'the network');
  t.notMatch(quickStart, /"error":/);
  for (const file of ['office.conf', 'laptop.conf']) {
    t.match(readFileSync(join(folder, '.longshore', file), 'utf8'), /^\[Interface\]$[^]*^PrivateKey = /m, file);
  }
  t.match(readFileSync(join(folder, '.longshore/laptop.conf'), 'utf8'), /^Endpoint = 192\.0\.2\.1:\d+$/m);
  t.equal(await started.interrupt(), 0);
});
