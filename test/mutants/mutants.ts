/**
 * The guards that keep acknowledged writes, each taken out in turn: a guard without a mutant that the tests kill is not
 * tested. `find` is exactly what stands in the compiled file, once; kill.ts fails where it does not.
 */
export interface Mutant {
  readonly name: string;
  /** What is taken out, and where it is promised. */
  readonly guard: string;
  /** Below dist/. */
  readonly file: string;
  readonly edits: readonly Edit[];
  readonly killedBy: Killer;
}

export interface Edit {
  readonly find: string;
  readonly replace: string;
}

export type Killer =
  /** test/sim/, from seed 1 on. */
  | { readonly by: 'simulation'; readonly seeds: number }
  /** One file of the tests. */
  | { readonly by: 'test'; readonly file: string };

const simulation: Killer = { by: 'simulation', seeds: 1000 };

export const mutants: readonly Mutant[] = [
  {
    name: 'fence left out',
    guard: 'Every write names the epoch that it was made under, and the server refuses it once that has moved (ADR 4)',
    file: 'actors/runtime/jetstream-store.js',
    edits: [{ find: 'head.set(expectedSequence, String(epoch));', replace: '' }],
    killedBy: simulation,
  },
  {
    name: 'lease check left out',
    guard: 'Nothing is answered from memory without a valid lease (ADR 8)',
    file: 'actors/runtime/ownership.js',
    edits: [{ find: 'if (this.#options.lease.isValid())', replace: 'if (true)' }],
    killedBy: simulation,
  },
  {
    name: 'output gate opened',
    guard: 'Commit precedes every reply (A3)',
    file: 'actors/runtime/partition.js',
    edits: [{ find: 'group.waiters.push(waiter);', replace: 'waiter(true);' }],
    killedBy: simulation,
  },
  {
    name: 'reads not gated',
    guard: 'A read of what is not committed waits for the commit (A3)',
    file: 'actors/runtime/partition.js',
    edits: [{ find: 'commits.after(commits.dirtyUntil(dirtOf(ask)),', replace: 'commits.after(0,' }],
    killedBy: simulation,
  },
  {
    name: 'operation id forgotten',
    guard: 'A write that is asked for again under its operation id is done once (A5)',
    file: 'actors/runtime/partition.js',
    edits: [{ find: 'operations.get(ask.op)', replace: 'undefined' }],
    killedBy: simulation,
  },
  {
    name: 'operation ids not loaded',
    guard: 'What was done under an operation id is known after a load, too (A5)',
    file: 'actors/runtime/ownership.js',
    edits: [{ find: 'of loaded.operations)', replace: 'of [])' }],
    killedBy: simulation,
  },
  {
    name: 'checkpoint mark moved early',
    guard: 'The mark moves with the values that it speaks of, in one batch (ADR 4)',
    file: 'actors/runtime/checkpoint.js',
    edits: [
      {
        find: 'writes.push({ key: keys.checkpoint, value: encodeValue(last) });',
        replace: 'writes.push({ key: keys.checkpoint, value: encodeValue(last + 1) });',
      },
    ],
    killedBy: simulation,
  },
  {
    name: 'events not awaited',
    guard: 'Events are stored before the mark moves (A3)',
    file: 'actors/runtime/checkpoint.js',
    edits: [{ find: 'await publishEvents(batch);', replace: 'void publishEvents(batch);' }],
    killedBy: simulation,
  },
  {
    name: 'complete-set rule dropped',
    guard: 'An orphan is removed only when every partition has answered (A4)',
    file: 'host-agent/fleet.js',
    edits: [
      { find: ' || !isConfirmed(desired)', replace: '' },
      { find: 'if (input.isSettled)', replace: 'if (true)' },
    ],
    killedBy: simulation,
  },
  {
    name: 'older set taken',
    guard: 'A set is never replaced by an older one (ADR 3)',
    file: 'host-agent/desired.js',
    edits: [{ find: 'if (held === undefined || isOlder(held, answer.set))', replace: 'if (true)' }],
    killedBy: { by: 'test', file: 'test/host-agent/desired.test.ts' },
  },
  {
    name: 'unknown outcome taken for a commit',
    guard: 'What has no answer is not acknowledged (A3)',
    file: 'actors/runtime/commits.js',
    edits: [{ find: "if (outcome.kind !== 'written') {", replace: "if (outcome.kind === 'fenced') {" }],
    killedBy: simulation,
  },
  {
    name: 'stale replica loaded',
    guard: 'A load that has not seen its own epoch is refused (ADR 4)',
    file: 'actors/runtime/jetstream-store.js',
    edits: [{ find: 'if (values.get(keys.epoch)?.revision !== epoch) {', replace: 'if (false) {' }],
    killedBy: simulation,
  },
  {
    name: 'compare without set',
    guard: 'Epochs and members move by compare-and-set alone (ADR 8)',
    file: 'lib/jetstream-keys.js',
    edits: [{ find: 'head.set(expectedSequence, String(expected));', replace: '' }],
    killedBy: simulation,
  },
  {
    name: 'epoch taken from a live member',
    guard: 'A partition is taken from a member that is dead, or has released it (ADR 8)',
    file: 'actors/keeper.js',
    edits: [{ find: 'return this.membership.isDead(record.owner);', replace: 'return true;' }],
    killedBy: simulation,
  },
  {
    name: 'dead without waiting',
    guard: 'A member is dead when its lease has been seen unchanged for 1.5 s (ADR 8)',
    file: 'actors/members/membership.js',
    edits: [{ find: '- sinceMs < limits.leaseUnchangedMs)', replace: '- sinceMs < 0)' }],
    killedBy: simulation,
  },
  {
    name: 'renewal counted from its end',
    guard: 'A lease counts from the start of its last renewal (ADR 8)',
    file: 'actors/members/membership.js',
    edits: [
      {
        find: 'this.#validUntilMs = startedMs + limits.leaseMs;',
        replace: 'this.#validUntilMs = this.#options.clock.monotonicMs() + limits.leaseMs;',
      },
    ],
    killedBy: { by: 'test', file: 'test/sim/lease.test.ts' },
  },
  {
    name: 'refused renewal taken for one',
    guard: 'A renewal that is refused ends the lease (ADR 8)',
    file: 'actors/members/membership.js',
    edits: [
      {
        find: 'if (revision === undefined)',
        replace: 'if (revision === undefined) this.#renewed(this.#revision, startedMs);\n            else if (false)',
      },
    ],
    killedBy: simulation,
  },
  {
    name: 'epoch read from the past',
    guard: 'A read of one’s own epoch from before it says nothing (ADR 8)',
    file: 'actors/runtime/epoch.js',
    edits: [{ find: "if ('epoch' in from && current.revision < from.epoch)", replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/sim/epoch.test.ts' },
  },
  {
    name: 'ring overrun',
    guard: 'A slot of the journal is used again only below the mark (ADR 4)',
    file: 'actors/runtime/commits.js',
    edits: [{ find: 'limits.journalSlots - 2;', replace: 'limits.journalSlots + 20;' }],
    killedBy: { by: 'test', file: 'test/actors/faults.test.ts' },
  },
  {
    name: 'gap in a page not seen',
    guard: 'A page of a read that arrives with a gap is refused (ADR 11)',
    file: 'lib/stream-read.js',
    edits: [{ find: 'if (gap !== undefined)', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/lib/stream-read.test.ts' },
  },
];

function killerText(killer: Killer): string {
  switch (killer.by) {
    case 'simulation':
      return 'the simulation';
    case 'test':
      return `\`${killer.file}\``;
  }
}

/** As docs/faults.md shows them. */
export const mutantTable = (): string =>
  [
    '| Left out or changed | The guard | In | Killed by |',
    '|---|---|---|---|',
    ...mutants.map(
      ({ name, guard, file, killedBy }) =>
        `| ${name} | ${guard} | \`${file.replace(/\.js$/, '.ts')}\` | ${killerText(killedBy)} |`,
    ),
  ].join('\n');
