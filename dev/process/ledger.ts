/**
 * What this process started and must not leave behind, written down before it is started. When the
 * process ends in whatever way (a crash, SIGKILL), a guard in a session of its own sees its pipe
 * close and ends what the ledger still names; where the guard is killed as well, the next start
 * does it (`reapAbandoned`). Nothing else is ever ended: a process is known by pid and start time,
 * or by a mark in its environment that holds a random id.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { ownFolder, shortTemporaryRoot } from '../paths.ts';
import { isAlive, processName, type ProcessName } from './proc.ts';

/** In the environment of whatever this tooling starts; inherited by what those start. */
export const markVariable = 'LONGSHORE_MARK';

export type Belonging =
  /** A server and its descendants: those that bear the mark. */
  | { readonly kind: 'server'; readonly id: string; readonly name: string; readonly graceMs: number }
  /**
   * Known once it runs; some servers overwrite the memory that shows their environment (Redis
   * does).
   */
  | { readonly kind: 'process'; readonly id: string; readonly process: ProcessName }
  /** What a container engine leaves beside its processes. */
  | { readonly kind: 'engine'; readonly id: string; readonly remains: EngineRemains }
  /** A temporary folder. */
  | { readonly kind: 'folder'; readonly id: string; readonly path: string };

export interface EngineRemains {
  /** Mounts below these are the engine's. */
  readonly folders: readonly string[];
  /** Name of the cgroup, below every hierarchy's root, under which its containers run. */
  readonly cgroup: string;
  /** Bridges with an address in this range (CIDR) are the engine's. */
  readonly addressPool: string;
  /**
   * How to run `ip` and `iptables` here; undefined where the engine makes no bridges or rules, or
   * there is no such program.
   */
  readonly ip: readonly string[] | undefined;
  readonly iptables: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>>;
}

type Line = { readonly add: Belonging } | { readonly done: string } | { readonly owner: ProcessName };

/** Ledgers of this user; a file is named after the pid of its process. */
export const ledgerFolder = (): string => join(shortTemporaryRoot(), `longshore-ledgers-${process.getuid?.() ?? 0}`);

interface Ledger {
  readonly file: string;
  readonly guard: ChildProcess;
  readonly open: Set<string>;
}

let ledger: Ledger | undefined;

export const newMark = (): string => randomBytes(16).toString('hex');

function write(file: string, line: Line): void {
  appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
}

/** `cat` waits for the end of our pipe; Node starts only where something is left to do. */
const guardScript = 'cat >/dev/null; if [ -e "$2" ]; then exec "$0" "$1" "$2"; fi';

function openLedger(): Ledger {
  const file = join(ownFolder(ledgerFolder()), `${process.pid}-${newMark().slice(0, 8)}.jsonl`);
  const owner = processName(process.pid);
  if (owner !== undefined) write(file, { owner });
  const guard = spawn('/bin/sh', ['-c', guardScript, process.execPath, join(import.meta.dirname, 'guard.js'), file], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    cwd: '/',
    // Not one of those who are ended by the mark of whatever started us.
    env: { ...process.env, [markVariable]: '' },
  });
  guard.on('error', () => undefined); // without a guard the next start reaps
  guard.unref();
  (guard.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return { file, guard, open: new Set() };
}

/** Writes down a belonging, before it comes to be. */
export function enter(belonging: Belonging): void {
  ledger ??= openLedger();
  ledger.open.add(belonging.id);
  write(ledger.file, { add: belonging });
}

/** It is gone, by our own hand. */
export function strike(id: string): void {
  if (ledger === undefined || !ledger.open.delete(id)) return;
  write(ledger.file, { done: id });
  if (ledger.open.size > 0) return;
  rmSync(ledger.file, { force: true });
  ledger.guard.stdin?.end();
  ledger = undefined;
  removeFolderIfEmpty();
}

export function removeFolderIfEmpty(): void {
  try {
    rmdirSync(ledgerFolder());
  } catch {
    // Others keep theirs in it.
  }
}

export interface LedgerContent {
  readonly owner: ProcessName | undefined;
  /** In the order in which they were entered. */
  readonly left: readonly Belonging[];
}

export function readLedger(text: string): LedgerContent {
  let owner: ProcessName | undefined;
  const left = new Map<string, Belonging>();
  for (const row of text.split('\n')) {
    let line: Line;
    try {
      line = JSON.parse(row) as Line;
    } catch {
      continue; // the last line of a process that was killed while it wrote
    }
    if ('owner' in line) owner = line.owner;
    else if ('done' in line) left.delete(line.done);
    else left.set(line.add.id, line.add);
  }
  return { owner, left: [...left.values()] };
}

/** Ledgers of processes that are gone. */
export function abandonedLedgers(): { file: string; content: LedgerContent }[] {
  let names: string[];
  try {
    names = readdirSync(ledgerFolder());
  } catch {
    return [];
  }
  return names
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => {
      const file = join(ledgerFolder(), name);
      try {
        const content = readLedger(readFileSync(file, 'utf8'));
        return content.owner !== undefined && !isAlive(content.owner) ? [{ file, content }] : [];
      } catch {
        return []; // another process reaped it
      }
    });
}
