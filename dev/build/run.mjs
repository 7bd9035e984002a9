/**
 * Child processes and messages for dev/bootstrap.mjs. Has no dependencies, because it runs before
 * `npm ci`.
 */
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
export const say = (text) => process.stderr.write(`${text}\n`);
export const seconds = (startMs) => `${((performance.now() - startMs) / 1000).toFixed(1)} s`;
/** @param path from the root; 0: there is no such file */
export const modifiedMs = (path) => statSync(resolve(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
export const bin = (name) => join(root, 'node_modules', '.bin', name);

export function fail(message) {
  say(message);
  process.exit(1);
}

/**
 * Runs a command to its end. On Ctrl-C a terminal signals the whole process group, including the
 * child, so this process does not forward SIGINT from a terminal.
 */
export function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', env: process.env, ...options });
    const output = [];
    child.stdout?.on('data', (chunk) => output.push(chunk));
    child.stderr?.on('data', (chunk) => output.push(chunk));
    const interactive = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY === true);
    const forward = (signal) => {
      if (!(signal === 'SIGINT' && interactive)) child.kill(signal);
    };
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, forward);
    const settle = (code) => {
      for (const signal of signals) process.removeListener(signal, forward);
      resolve({ code, output: Buffer.concat(output).toString() });
    };
    child.once('error', (error) => {
      output.push(Buffer.from(`${command}: ${error.message}\n`));
      settle(127);
    });
    child.once('exit', (code, signal) => settle(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}

/**
 * Runs a command and hides its output, unless it fails. Then prints the output and exits with the
 * command's code.
 */
export async function step(name, command, args, options = {}) {
  const startMs = performance.now();
  const { code, output } = await run(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  if (code !== 0) {
    process.stderr.write(output);
    say(`✗ ${name} failed after ${seconds(startMs)}`);
    process.exit(code);
  }
  return seconds(startMs);
}
