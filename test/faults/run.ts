/**
 * `npm run test:faults`: runs the control plane on real processes, injects faults chosen by a seed,
 * and judges the result. Where possible it runs itself again in a network namespace of its own, so
 * that two runs do not meet and leave nothing behind.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../../lib/error-message.ts';
import { enter, strike } from '../../dev/process/ledger.ts';
import { repositoryRoot, shortTemporaryRoot } from '../../dev/paths.ts';
import { say } from '../../dev/steps.ts';
import { run } from '../../dev/process/run.ts';
import { toolHere } from '../../dev/fetch/tools.ts';
import { faultKinds } from './faults/schedule.ts';
import { killMutants } from '../mutants/kill.ts';
import { mutantsOfTurn } from '../mutants/mutants.ts';
import { partOfTurn } from '../support/runner/choice/rotation.ts';
import { table } from './report.ts';
import { runTrial, type Trial } from './trial.ts';

const usage = `usage: npm run test:faults -- [options]
  --seed 7          only this seed
  --seeds 1-10      these seeds; default: one, another for the next commit
  --minutes 30      from the first seed on, as many as fit into this time
  --faults 8        faults of each seed
  --only "a,b"      only faults of these kinds: ${faultKinds.map(({ name }) => name).join(', ')}
  --actors 2        actors processes, 1 or 2
  --programs dist   folder of the compiled programs
  --loopback        without network namespaces, and without network faults
  --keep            keep the folder of each seed: its logs and its history
  --markdown        the closing table as Markdown
  --mutants 4       then run the mutants, of so many parts the one whose turn it is: 1 is all, 0 none;
                    default: 4 in a run without other options, else none`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: String(1 + partOfTurn(20)) },
    minutes: { type: 'string' },
    faults: { type: 'string', default: '8' },
    only: { type: 'string', default: '' },
    actors: { type: 'string', default: '2' },
    programs: { type: 'string', default: join(repositoryRoot, 'dist') },
    loopback: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    mutants: { type: 'string', default: process.argv.length === 2 ? '4' : '0' },
    /** This program runs itself with it in the new namespace. */
    inside: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** The seeds to run: a range, or one after another for as long as there is time. */
function* seedsOf(): Generator<number> {
  const [first = NaN, last = first] = (values.seed ?? values.seeds).split('-').map(Number);
  if (values.minutes === undefined) {
    for (let seed = first; seed <= last; seed++) yield seed;
    return;
  }
  const endMs = performance.now() + Number(values.minutes) * 60_000;
  for (let seed = first; performance.now() < endMs; seed++) yield seed;
}

function tell({ seed, judgements, growths, folder }: Trial, isKept: boolean): void {
  for (const { place, fromBytes, toBytes, overMs } of growths) {
    const mib = (bytes: number): string => (bytes / 1024 ** 2).toFixed(0);
    say(`  memory of ${place}: ${mib(fromBytes)} → ${mib(toBytes)} MiB in ${(overMs / 1000).toFixed(0)} s`);
  }
  for (const { what, faults } of judgements) {
    say(`  ${faults.length === 0 ? '✓' : '✗'} ${what}`);
    for (const fault of faults.slice(0, 10)) say(fault.replaceAll(/^/gm, '      '));
    if (faults.length > 10) say(`      … and ${faults.length - 10} more`);
  }
  if (isKept) say(`  history and logs: ${folder}; to repeat: npm run test:faults -- --seed ${seed}`);
}

async function runAll(hasNamespaces: boolean): Promise<number> {
  const trials: Trial[] = [];
  const actors = values.actors === '1' ? (['a1'] as const) : (['a1', 'a2'] as const);
  for (const seed of seedsOf()) {
    // The path of a socket in it must be short.
    const folder = mkdtempSync(join(shortTemporaryRoot(), 'lf-'));
    enter({ kind: 'folder', id: folder, path: folder });
    let isKept = values.keep;
    try {
      const trial = await runTrial({
        seed,
        folder,
        compiled: resolve(values.programs),
        hasNamespaces,
        actors,
        faults: Number(values.faults),
        only: values.only.split(',').filter((name) => name !== ''),
        say,
      });
      trials.push(trial);
      isKept ||= trial.judgements.some(({ faults }) => faults.length > 0);
      tell(trial, isKept);
    } catch (error) {
      isKept = true;
      say(`  seed ${seed} did not run to its end; its logs: ${folder}`);
      throw error;
    } finally {
      if (!isKept) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      strike(folder);
    }
  }
  say('');
  for (const line of table(trials, values.markdown)) say(line);
  return trials.every(({ judgements }) => judgements.every(({ faults }) => faults.length === 0)) ? 0 : 1;
}

/**
 * Reason why there can be no namespace. Fetches the tools first: a namespace has no network
 * outside.
 */
async function namespacesMissing(): Promise<string | undefined> {
  if (values.loopback) return 'by --loopback';
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'network namespaces need Linux and root';
  try {
    for (const name of ['ip', 'nft'] as const) await toolHere(name);
    const tried = await run('unshare', ['--net', '--', 'true'], { deadlineMs: 5_000 });
    return tried.code === 0 ? undefined : tried.stderr.trim();
  } catch (error) {
    return messageOf(error);
  }
}

/** The same program in a network namespace. It ends when its input does, so with this process. */
function runInside(): Promise<number> {
  const script = 'ip link set dev lo up && exec "$@"';
  const self = [process.execPath, ...process.execArgv, import.meta.filename, ...process.argv.slice(2), '--inside'];
  const child = spawn('unshare', ['--net', '--', 'sh', '-c', script, 'sh', ...self], {
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  return new Promise((settle) => {
    child.once('error', (error) => {
      say(error.message);
      settle(127);
    });
    child.once('exit', (code, signal) => settle(code ?? 128 + constants.signals[signal ?? 'SIGKILL']));
  });
}

async function main(): Promise<number> {
  if (values.help) {
    say(usage);
    return 0;
  }
  if (!/^[0-9]$/.test(values.mutants)) {
    say(`--mutants ${values.mutants}: give a number of parts, such as 4, or 0 for none`);
    return 2;
  }
  if (values.inside) {
    // The ledger's guard ends what this process started.
    process.stdin.once('end', () => process.exit(130)).resume();
    return runAll(true);
  }
  await toolHere('nats-server');
  const missing = await namespacesMissing();
  if (missing !== undefined) say(`On loopback, without network faults: ${missing}.`);
  const code = missing === undefined ? await runInside() : await runAll(false);
  const mutantTurns = Number(values.mutants);
  if (mutantTurns === 0) return code;
  say('');
  const { killed, all } = await killMutants(mutantsOfTurn(mutantTurns));
  return killed === all ? code : 1;
}

process.exit(await main());
