/**
 * The ledger: a file that lists what this process must not leave behind, written before each thing
 * is started. When the process ends in any way (a crash, SIGKILL), a guard process in its own
 * session sees its pipe close and cleans up what the ledger still lists. If the guard is killed
 * too, the next start does it (`reapAbandoned`). Nothing else is ever ended: a process is
 * identified by pid and start time, or by a random mark in its environment.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { appendFileSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { ownFolder, shortTemporaryRoot } from '../paths.ts';
import { isAlive, processName, type ProcessName } from './proc.ts';

/** Set in the environment of every server that this tooling starts; its descendants inherit it. */
export const markVariable = 'LONGSHORE_MARK';

export type Belonging =
  /** A server and its descendants, identified by the mark. */
  | { readonly kind: 'server'; readonly id: string; readonly name: string; readonly graceMs: number }
  /**
   * A server's process, entered once it runs. Needed because some servers, such as Redis, overwrite
   * the memory that shows their environment.
   */
  | { readonly kind: 'process'; readonly id: string; readonly process: ProcessName }
  /** Things that a container engine leaves besides its processes. */
  | { readonly kind: 'engine'; readonly id: string; readonly remains: EngineRemains }
  /** A network namespace with a name, as of `ip netns`. */
  | { readonly kind: 'namespace'; readonly id: string; readonly name: string }
  /** A temporary folder. */
  | { readonly kind: 'folder'; readonly id: string; readonly path: string };

export interface EngineRemains {
  /** Mounts below these folders belong to the engine. */
  readonly folders: readonly string[];
  /** Name of the cgroup of the engine's containers, below the root of every hierarchy. */
  readonly cgroup: string;
  /** Bridges with an address in this CIDR range belong to the engine. */
  readonly addressPool: string;
  /**
   * Command lines of `ip` and `iptables`; undefined if the program is missing or the engine makes
   * no bridges or rules.
   */
  readonly ip: readonly string[] | undefined;
  readonly iptables: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>>;
}

type Line = { readonly add: Belonging } | { readonly done: string } | { readonly owner: ProcessName };

/** The folder of this user's ledgers. Each file is named after the pid of its process. */
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

/** `cat` waits until our pipe closes. Node starts only if something is left to clean up. */
const guardScript = 'cat >/dev/null; if [ -e "$2" ]; then exec "$0" "$1" "$2"; fi';

function openLedger(): Ledger {
  const file = join(ownFolder(ledgerFolder()), `${process.pid}-${newMark().slice(0, 8)}.jsonl`);
  const owner = processName(process.pid);
  if (owner !== undefined) write(file, { owner });
  const guard = spawn('/bin/sh', ['-c', guardScript, process.execPath, join(import.meta.dirname, 'guard.js'), file], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    cwd: '/',
    // Without a mark, so that the guard is not ended together with the processes of whatever
    // started us.
    env: { ...process.env, [markVariable]: '' },
  });
  guard.on('error', () => undefined); // without a guard, the next start cleans up
  guard.unref();
  (guard.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return { file, guard, open: new Set() };
}

/**
 * Enters a belonging in the ledger. Call it before the belonging exists; for a process, as soon as
 * its pid is known.
 */
export function enter(belonging: Belonging): void {
  ledger ??= openLedger();
  ledger.open.add(belonging.id);
  write(ledger.file, { add: belonging });
}

/** Removes an entry, after this process itself ended or removed what it names. */
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
    // Other processes keep their ledgers in it.
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
      continue; // the process was killed while it wrote its last line
    }
    if ('owner' in line) owner = line.owner;
    else if ('done' in line) left.delete(line.done);
    else left.set(line.add.id, line.add);
  }
  return { owner, left: [...left.values()] };
}

/** The ledgers of processes that have ended. */
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
        return []; // another process cleaned it up
      }
    });
}
