/** Rules that imports do not show: pure code uses no environment, clock or randomness. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../dev/paths.ts';

const { pure } = (await import(join(repositoryRoot, '.dependency-cruiser.mjs'))) as { pure: string };

const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: repositoryRoot,
  encoding: 'utf8',
  maxBuffer: 16 * 1024 * 1024,
})
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(repositoryRoot, path)));
const sources = files.filter((path) => path.endsWith('.ts'));
const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');
const withoutComments = (text: string): string => text.replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm, '');

t.test('pure files use neither environment, clock, randomness nor network', (t) => {
  const impure =
    /\bprocess\.|\bDate\.now\b|\bnew Date\(\s*\)|\bMath\.random\b|\brandom(?:Bytes|UUID|Int)\b|\bperformance\.|\bfetch\(|\bset(?:Timeout|Interval|Immediate)\b/;
  const decided = sources.filter((path) => new RegExp(pure).test(path));
  t.ok(decided.length > 20, 'there are pure files');
  const faults = decided.flatMap((path) => {
    const match = impure.exec(withoutComments(read(path)));
    return match === null ? [] : [`${path}: ${match[0]}`];
  });
  t.same(faults, []);
  t.end();
});

t.test('only main.ts and tooling read the environment', (t) => {
  // Setting a variable for a native library is allowed.
  const readsEnvironment = /\bprocess\.env\b(?!\[[^\]]+\]\s*=[^=])/;
  const faults = sources
    .filter((path) => /^(schemas|lib|gateway|actors|host-agent)\//.test(path) && !path.endsWith('/main.ts'))
    .filter((path) => readsEnvironment.test(withoutComments(read(path))));
  t.same(faults, []);
  t.end();
});

t.test('an event of the log says to what it happened: `lease_revoked`, `lease_renew_failed`', (t) => {
  const states = ['started', 'serving', 'listening', 'stopping', 'stopped'];
  const calls = /\b[lL]og(?:\[[^\]]*\])?\.(?:debug|info|warn|error)\(\s*'([^']*)'/g;
  const faults = sources
    .filter((path) => /^(lib|gateway|actors|host-agent)\//.test(path))
    .flatMap((path) => [...withoutComments(read(path)).matchAll(calls)].map(([, event = '']) => ({ path, event })))
    .filter(({ event }) => !states.includes(event) && (!/^[a-z]+(_[a-z]+)+$/.test(event) || event.includes('_not_')));
  t.same(faults, []);
  t.end();
});

t.test('no file names a place outside the repository or a mirror of one machine', (t) => {
  // Split in two, so that this file does not contain what it looks for.
  const outside = [
    '../' + 'shared',
    '/wo' + 'rk/',
    'registry.' + 'npmjs.org',
    'deb.' + 'debian.org',
    'snapshot.' + 'debian',
    'DESIGN' + '.md',
    'CONTRACT' + '.md',
  ];
  const faults = files.flatMap((path) => {
    const text = read(path);
    return outside.filter((word) => text.includes(word)).map((word) => `${path}: ${word}`);
  });
  t.same(faults, []);
  t.end();
});

t.test('commands write through one output alone, which shows what a terminal would obey', (t) => {
  const gates = ['cli/run.ts', 'cli/terminal/output.ts', 'cli/terminal/input.ts'];
  const past =
    /\bconsole\.|\bprocess\.std(?:out|err)\b|\bstd(?:out|err)\.raw\b|\bwriteSync\b|'\/dev\/(?:tty|stdout|stderr)/;
  const others: Readonly<Record<string, RegExp>> = {
    // The program that a person runs owns the terminal, as with docker and kubectl.
    'cli/tenant/sessions/exec.ts': /\bstd(?:out|err)\.raw\b/g,
    // A script for a container.
    'host-agent/network/firewall-probe.ts': /\bconsole\.log\b/g,
  };
  const faults = sources
    .filter((path) => /^(cli|ops|host-agent)\//.test(path) && !gates.includes(path))
    .flatMap((path) => {
      const match = past.exec(withoutComments(read(path)).replaceAll(others[path] ?? /(?!)/g, ''));
      return match === null ? [] : [`${path}: ${match[0]}`];
    });
  t.same(faults, []);
  t.end();
});
