/** `npm run bench`: the stack of `npm start` in a folder of its own, measured; the load generator shares the machine. */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDemoNetwork } from '../../deploy/demo-peer.ts';
import { cacheFolder } from '../../deploy/paths.ts';
import { startStack } from '../../deploy/stack.ts';
import { say } from '../../deploy/steps.ts';
import { benchVpn, type Line } from './vpn.ts';

const width = 40;

function show(lines: readonly Line[]): void {
  const row = (what: string, ...cells: string[]): void =>
    say([what.padEnd(width), ...cells.map((cell) => cell.padStart(10))].join(' '));
  row('', 'per second', 'p50 ms', 'p99 ms', 'ratio');
  const base = lines[0]?.measured?.perSecond ?? NaN;
  for (const { what, measured } of lines) {
    if (measured === undefined) {
      say(what);
      continue;
    }
    const { perSecond, p50Ms, p99Ms } = measured;
    row(what, perSecond.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2), (perSecond / base).toFixed(3));
  }
}

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort());
  const stateFolder = mkdtempSync(join(tmpdir(), 'lb-'));
  const stack = await startStack({ env, stateFolder, cacheFolder: cacheFolder(env), signal: stopping.signal });
  try {
    await makeDemoNetwork(stack);
    const lines = await benchVpn(stack);
    say('');
    say(`${availableParallelism()} cores, shared with the load generator; ratio: to the first line.`);
    show(lines);
  } finally {
    await stack.stop();
    rmSync(stateFolder, { recursive: true, force: true });
  }
}

await main(process.env);
process.exit(0);
