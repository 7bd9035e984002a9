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
const decisions: Killer = { by: 'test', file: 'test/actors/container.test.ts' };

export const mutants: readonly Mutant[] = [
  {
    name: 'unserved tenants on the VPN server',
    guard: 'Peers of a tenant that a network does not name have their certificates on hold (docs/security.md)',
    file: 'actors/network-state.js',
    edits: [{ find: 'return this.#served?.has(tenant) ?? true;', replace: 'return true;' }],
    killedBy: { by: 'test', file: 'test/actors/network.test.ts' },
  },
  {
    name: 'route to everything opens private networks',
    guard: 'Peers reach private ranges only where a route names them (docs/security.md)',
    file: 'gateway/vpn/nftables.js',
    edits: [
      {
        find: '(range) => contains(range, route)',
        replace: '(range) => contains(range, route) || contains(route, range)',
      },
    ],
    killedBy: { by: 'test', file: 'test/gateway/vpn/nftables.test.ts' },
  },
  {
    name: 'disk limit not kept',
    guard: 'A container that has written more than it may is removed (docs/security.md, disk-fill)',
    file: 'host-agent/disk-plan.js',
    edits: [{ find: 'usedBytes > limitBytes', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/host-agent/disk-plan.test.ts' },
  },
  {
    name: 'images of others collected',
    guard: 'An image that the agent did not pull stays (ADR 21)',
    file: 'host-agent/images.js',
    edits: [{ find: "policy === 'all' || usedAtMs.has(Id)", replace: 'true' }],
    killedBy: { by: 'test', file: 'test/host-agent/images.test.ts' },
  },
  {
    name: 'wanted images collected',
    guard: 'An image in use or wanted here stays (ADR 21)',
    file: 'host-agent/images.js',
    edits: [{ find: '!kept.has(Id) && ', replace: '' }],
    killedBy: { by: 'test', file: 'test/host-agent/images.test.ts' },
  },
  {
    name: 'eviction taken for a crash',
    guard: 'What is evicted is removed, and its status says why (docs/security.md, disk-fill)',
    file: 'host-agent/plan.js',
    edits: [{ find: 'memory.evicted?.dockerId === dockerId', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/host-agent/plan.test.ts' },
  },
  {
    name: 'tokens outlive a rotation',
    guard: 'Rotation ends every token of the peer (docs/security.md)',
    file: 'actors/peer/keys.js',
    edits: [{ find: 'tokens = [] } = ask', replace: 'tokens = record.tokens } = ask' }],
    killedBy: { by: 'test', file: 'test/actors/peer.test.ts' },
  },
  {
    name: 'ended token reads new keys',
    guard: 'A token must be good when the peer is read, not only when the request came (docs/security.md)',
    file: 'actors/peer/decide.js',
    edits: [{ find: 'tokenHash === undefined || ', replace: 'true || ' }],
    killedBy: { by: 'test', file: 'test/actors/peer.test.ts' },
  },
  {
    name: 'capabilities not dropped',
    guard: 'A container holds the capabilities it is given and no others (docs/security.md, capabilities)',
    file: 'host-agent/confinement.js',
    edits: [{ find: "CapDrop: ['ALL'],", replace: 'CapDrop: [],' }],
    killedBy: { by: 'test', file: 'test/host-agent/spec.test.ts' },
  },
  {
    name: 'image not checked',
    guard: 'An image that says too much of itself is refused (docs/security.md, image-labels)',
    file: 'host-agent/image-check.js',
    edits: [{ find: 'amount > max', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/host-agent/image-check.test.ts' },
  },
  {
    name: 'labels of images kept',
    guard: 'Labels of an image are blanked at create (docs/security.md, image-labels)',
    file: 'host-agent/spec.js',
    edits: [{ find: "...Object.fromEntries(imageLabels.map((name) => [name, ''])),", replace: '' }],
    killedBy: { by: 'test', file: 'test/host-agent/spec.test.ts' },
  },
  {
    name: 'list read whole',
    guard: 'What containers carry does not hide them (docs/security.md, image-labels)',
    file: 'host-agent/docker/transport.js',
    edits: [{ find: 'keep !== undefined && status === 200', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/host-agent/transport.test.ts' },
  },
  {
    name: 'last contact forgotten',
    guard: 'A restart of a cut-off agent does not let containers run longer (ADR 14)',
    file: 'host-agent/contact.js',
    edits: [
      { find: 'atMs <= time.nowMs() ? atMs : undefined', replace: 'atMs <= time.nowMs() ? time.nowMs() : undefined' },
    ],
    killedBy: { by: 'test', file: 'test/host-agent/contact.test.ts' },
  },
  {
    name: 'deletions without end',
    guard: 'A tenant deletes no more containers in an hour than its cap, and then creates none',
    file: 'actors/tenant/remembered.js',
    edits: [{ find: '!isLately(firstMs, context)', replace: 'true' }],
    killedBy: { by: 'test', file: 'test/actors/remembered.test.ts' },
  },
  {
    name: 'forgotten for another',
    guard: 'Where a partition remembers too much, the tenant with the most forgets, and no other',
    file: 'actors/sweep.js',
    edits: [{ find: 'forget(mostTombstones(state).values()', replace: 'forget(state.tombstones()' }],
    killedBy: { by: 'test', file: 'test/actors/remembered.test.ts' },
  },
  {
    name: 'any key believed',
    guard: 'Actors believe only the key that is enrolled for a host now (A7, ADR 22)',
    file: 'actors/host/sender.js',
    edits: [{ find: 'host.publicKey === user', replace: 'true' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'credentials of the last release believed for ever',
    guard: 'An agent with bound credentials ends the belief in those of the last release (ADR 22)',
    file: 'actors/host/sender.js',
    edits: [{ find: 'host.isBound !== true', replace: 'true' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'a damaged host cut off',
    guard: 'A host whose record is damaged keeps what it runs (ADR 22)',
    file: 'actors/hosts.js',
    edits: [
      { find: 'return held === undefined ? undefined : keepsWhatItRuns(common, held)', replace: 'return undefined' },
    ],
    killedBy: { by: 'test', file: 'test/actors/senders.test.ts' },
  },
  {
    name: 'no way back to unbound credentials',
    guard: 'Credentials that get no answer are left for those before (ADR 22)',
    file: 'host-agent/credentials.js',
    edits: [{ find: 'isFallenBack = true', replace: 'isFallenBack = false' }],
    killedBy: { by: 'test', file: 'test/host-agent/bound.test.ts' },
  },
  {
    name: 'capacity believed',
    guard: 'A host offers no more than its ceiling (ADR 22)',
    file: 'actors/host/ceiling.js',
    edits: [{ find: 'Math.min(claimed.cpu_millis, ceiling.cpu_millis)', replace: 'claimed.cpu_millis' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'isolation ended by any answer',
    guard: 'What was stopped for silence starts only after a sync (ADR 14)',
    file: 'host-agent/contact.js',
    edits: [{ find: "if (footingOf(silence()) === 'in_touch')\n", replace: 'if (true)\n' }],
    killedBy: { by: 'test', file: 'test/host-agent/contact.test.ts' },
  },
  {
    name: 'answers outside of inboxes',
    guard: 'A gateway names no subject that it may not write to as its reply (ADR 18)',
    file: 'actors/asks.js',
    edits: [{ find: 'if (!isInbox(message.reply))', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/attacks/stolen-gateway-credentials.test.ts' },
  },
  {
    name: 'reads handed on with any reply',
    guard: 'JetStream writes for a gateway into its inbox alone (ADR 18)',
    file: 'actors/reads.js',
    edits: [{ find: 'if (!isInbox(reply))', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/attacks/stolen-gateway-credentials.test.ts' },
  },
  {
    name: 'jti covered by all',
    guard: 'A token revoked by its jti is refused whatever its iat (docs/security.md)',
    file: 'schemas/tenant.js',
    edits: [{ find: "match.by === 'jti' ? limits.issuerAheadMs / 1000 : 0", replace: '0' }],
    killedBy: { by: 'test', file: 'test/attacks/token-issued-ahead.test.ts' },
  },
  {
    name: 'operators of any issuer',
    guard: 'An issuer names operators only where its entry says so (ADR 18)',
    file: 'gateway/auth/claims.js',
    edits: [{ find: 'if (powers.length > 0 && !issuer.operators)', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/attacks/narrow-operator-token.test.ts' },
  },
  {
    name: 'narrow token opens its tenant',
    guard: 'A token for a part of the operator API opens nothing of its tenant (ADR 18)',
    file: 'gateway/auth/scopes.js',
    edits: [{ find: "powers.length > 0 ? 'tenant' : undefined", replace: 'undefined' }],
    killedBy: { by: 'test', file: 'test/attacks/narrow-operator-token.test.ts' },
  },
  {
    name: 'redis believed without bound',
    guard: 'What Redis says leaves every tenant a share of its rate (docs/security.md)',
    file: 'gateway/rate-limits.js',
    edits: [
      {
        find: 'Math.min(waitS(common, perSecond), waitS(floor',
        replace: 'Math.max(waitS(common, perSecond), waitS(floor',
      },
    ],
    killedBy: { by: 'test', file: 'test/gateway/limits.test.ts' },
  },
  {
    name: 'forged signatures not counted',
    guard: 'Wrong signatures of a published key are limited (docs/security.md)',
    file: 'gateway/auth/gate.js',
    edits: [{ find: 'if (verdict.forgedFor !== undefined)\n', replace: 'if (false)\n' }],
    killedBy: { by: 'test', file: 'test/attacks/junk-tokens.test.ts' },
  },
  {
    name: 'junk in URLs asked about',
    guard: 'A malformed token in a URL costs nothing (docs/security.md)',
    file: 'gateway/auth/url-tokens.js',
    edits: [{ find: 'if (token?.scope !== scope)', replace: 'if (token === undefined)' }],
    killedBy: { by: 'test', file: 'test/attacks/junk-tokens.test.ts' },
  },
  {
    name: 'port taken for a part of the client',
    guard: 'Another port of a client is not another client (docs/security.md)',
    file: 'gateway/auth/client-address.js',
    edits: [{ find: "withPort.exec(hop)?.[1] ?? ''", replace: 'hop' }],
    killedBy: { by: 'test', file: 'test/gateway/auth.test.ts' },
  },
  {
    name: 'seats without a bound for a client',
    guard: 'One address does not take all places (docs/security.md)',
    file: 'gateway/seats.js',
    edits: [{ find: "holder.count >= this.bounds.perClient ? 'client' :", replace: '' }],
    killedBy: { by: 'test', file: 'test/gateway/seats.test.ts' },
  },
  {
    name: 'connection kept after chunks',
    guard: 'Nothing runs behind a chunked body of uWebSockets.js (docs/security.md)',
    file: 'gateway/http/uws.js',
    edits: [{ find: " || framing.kind === 'chunked' }", replace: ' }' }],
    killedBy: { by: 'test', file: 'test/gateway/http.test.ts' },
  },
  {
    name: 'reply waits for a body without end',
    guard: 'A reply does not wait for a body that does not come (docs/security.md)',
    file: 'gateway/http/body.js',
    edits: [{ find: 'nowMs - this.#drainedFromMs >= limits.bodyDrainMs', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/gateway/http.test.ts' },
  },
  {
    name: 'damaged tenant covered',
    guard: 'Tokens of a tenant whose record is damaged are not served (ADR 13)',
    file: 'gateway/auth/revocation-feed.js',
    edits: [{ find: 'if (heard.unreadable.has(tenant))\n', replace: 'if (false)\n' }],
    killedBy: { by: 'test', file: 'test/gateway/limits.test.ts' },
  },
  {
    name: 'damaged tenant overwritten',
    guard: 'A damaged tenant record is replaced by an explicit repair alone (ADR 13)',
    file: 'actors/tenant/decide.js',
    edits: [{ find: 'if (tenant.settingsDamaged && repair === undefined)', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/tenant.test.ts' },
  },
  {
    name: 'damaged container counted as nothing',
    guard: 'A create that needs an unknown amount is refused (ADR 13)',
    file: 'actors/tenant/quota.js',
    edits: [{ find: 'if (unknown.has(dimension))', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/container.test.ts' },
  },
  {
    name: 'told for ever',
    guard: 'What a network was told counts in one incarnation only (ADR 13)',
    file: 'actors/vpn-state.js',
    edits: [{ find: 'const isOfNow = (record.toldIn ?? 0) === incarnation;', replace: 'const isOfNow = true;' }],
    killedBy: { by: 'test', file: 'test/actors/vpn-restore.test.ts' },
  },
  {
    name: 'leases not asked about',
    guard: 'After a restore a network asks about leases that no peer confirms (ADR 13)',
    file: 'actors/network-state.js',
    edits: [{ find: 'else if (!isConfirmed(lease, this.#incarnation))', replace: 'else if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/vpn-restore.test.ts' },
  },
  {
    name: 'certificates of a replaced lease left good',
    guard: 'After a restore certificates that only the network knows are revoked (ADR 13)',
    file: 'actors/network/learn.js',
    edits: [{ find: 'isOfBefore ? unknownTo(before, told, nowMs) : []', replace: '[]' }],
    killedBy: { by: 'test', file: 'test/actors/vpn-restore.test.ts' },
  },
  {
    name: 'wall clock believed',
    guard: 'Deletion by time goes by a clock that does not jump (ADR 13)',
    file: 'lib/cautious-clock.js',
    edits: [{ find: 'isSettled ? wallMs :', replace: 'true ? wallMs :' }],
    killedBy: { by: 'test', file: 'test/actors/cautious-clock.test.ts' },
  },
  {
    name: 'revocation pushed once and believed',
    guard: 'What every NATS server holds is compared after a push (ADR 14)',
    file: 'lib/account-claims.js',
    edits: [{ find: 'if (held.every(isHeld))', replace: 'if (held.some(isHeld))' }],
    killedBy: { by: 'test', file: 'test/lib/account-claims.test.ts' },
  },
  {
    name: 'load believes the wall clock',
    guard: 'The next owner of a partition goes on from the time of the one before it (ADR 13)',
    file: 'lib/cautious-clock.js',
    edits: [{ find: 'Math.min(wallMs, from?.atMs ?? wallMs)', replace: 'wallMs' }],
    killedBy: { by: 'test', file: 'test/actors/cautious-clock.test.ts' },
  },
  {
    name: 'tombstones by the wall clock',
    guard: 'What is gone stays readable for seven days, whatever the wall clock shows (ADR 13)',
    file: 'lib/cautious-clock.js',
    edits: [{ find: 'return this.read().atMs;', replace: 'return this.#clock.nowMs();' }],
    killedBy: simulation,
  },
  {
    name: 'time from the newest record',
    guard: 'What an owner dates whose clock is days behind is not old for the next (ADR 13)',
    file: 'actors/runtime/load.js',
    edits: [
      { find: 'clock: pending.length > 0 ? pending.at(-1)?.clock : readClock(values)', replace: 'clock: undefined' },
    ],
    killedBy: simulation,
  },
  {
    name: 'lost digest taken for none',
    guard: 'A checkpoint whose digest is lost is refused (ADR 11)',
    file: 'actors/runtime/load.js',
    edits: [{ find: 'if (stored === undefined && hasClock)', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/load.test.ts' },
  },
  {
    name: 'refusal forgotten',
    guard: 'A write that was refused does not succeed when a copy of it comes late (ADR 13)',
    file: 'actors/runtime/partition.js',
    edits: [{ find: 'if (isFinal(ask, decided.reply))', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/refusals.test.ts' },
  },
  {
    name: 'part of a directory taken for all',
    guard: 'Hosts of a part that has not arrived do not look removed (ADR 13)',
    file: 'actors/directory.js',
    edits: [{ find: 'if (begun.size < parts)', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/directory.test.ts' },
  },
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
    killedBy: { by: 'test', file: 'test/actors/runtime.test.ts' },
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
    edits: [{ find: 'const operation of known)', replace: 'const operation of [])' }],
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
    guard: 'Events are published before the mark moves, or parked with it (A3, ADR 12)',
    file: 'actors/runtime/checkpoint.js',
    edits: [{ find: 'const writes = outbox.park(entry);', replace: 'const writes = [];' }],
    killedBy: { by: 'test', file: 'test/actors/outbox.test.ts' },
  },
  {
    name: 'parked events not loaded',
    guard: 'What was parked is published by the next owner (ADR 12)',
    file: 'actors/runtime/load.js',
    edits: [{ find: 'parked.push({ key, entries: decoded.value });', replace: 'void key;' }],
    killedBy: { by: 'test', file: 'test/actors/load.test.ts' },
  },
  {
    name: 'publication not taken up again',
    guard: 'What is wanted while a publication ends is published, too (ADR 12)',
    file: 'actors/runtime/outbox.js',
    edits: [{ find: 'if (takeEntries(this.#unpublished, this.#wanted).length > 0)', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/outbox.test.ts' },
  },
  {
    name: 'parked events deleted early',
    guard: 'A key of parked events goes once all its events are published (ADR 12)',
    file: 'actors/runtime/outbox.js',
    edits: [{ find: '<= this.publishedTo;', replace: '<= this.#parkedTo;' }],
    killedBy: { by: 'test', file: 'test/actors/outbox.test.ts' },
  },
  {
    name: 'parked events without a bound',
    guard: 'What is parked is bounded; beyond, the mark stands still (ADR 12)',
    file: 'actors/runtime/outbox.js',
    edits: [{ find: 'bytes > limits.eventsParkedBytes', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/actors/outbox.test.ts' },
  },
  {
    name: 'events that are not published are not told',
    guard: 'A tenant reads its own events: what is committed is told by the owner until the stream has it (ADR 12)',
    file: 'actors/runtime/outbox.js',
    edits: [
      {
        find: 'this.#unpublished.push({ number, events });\n        this.#show(events);',
        replace: 'this.#unpublished.push({ number, events });',
      },
    ],
    killedBy: { by: 'test', file: 'test/gateway/own-events.test.ts' },
  },
  {
    name: 'complete-set rule dropped',
    guard: 'An operator’s approval removes orphans only when every partition has answered (A4)',
    file: 'host-agent/fleet.js',
    edits: [
      { find: ' && isConfirmed(desired)', replace: '' },
      { find: 'if (input.isSettled && ', replace: 'if (' },
    ],
    killedBy: { by: 'test', file: 'test/host-agent/fleet.test.ts' },
  },
  {
    name: 'every stranger taken for given away',
    guard: 'What the control plane does not know is held (A4)',
    file: 'host-agent/fleet.js',
    edits: [{ find: "given.get(id) === placement ? 'gone' : 'unknown'", replace: "'gone'" }],
    killedBy: { by: 'test', file: 'test/host-agent/fleet.test.ts' },
  },
  {
    name: 'epochs told as they are stored',
    guard: 'After a restore no agent takes what it is told for older than what it has (A4)',
    file: 'schemas/cluster.js',
    edits: [{ find: '(epochBases?.[partition] ?? 0) + revision', replace: 'revision' }],
    killedBy: simulation,
  },
  {
    name: 'peers tell their network once',
    guard: 'After a restore every peer tells its network again (ADR 13)',
    file: 'actors/vpn-state.js',
    edits: [{ find: '(record.toldIn ?? 0) === incarnation', replace: 'true' }],
    killedBy: simulation,
  },
  {
    name: 'verdict without incarnation',
    guard: 'After a restore, what was moved or deleted before it is held (A4)',
    file: 'actors/strangers.js',
    edits: [{ find: 'incarnation === 0 || (atMs ?? 0) > incarnation', replace: 'true' }],
    killedBy: { by: 'test', file: 'test/actors/strangers.test.ts' },
  },
  {
    name: 'verdict of another version',
    guard: 'An owner’s verdict counts only beside the version of the set that it was given with (A4)',
    file: 'host-agent/desired.js',
    edits: [{ find: 'held?.epoch === epoch && held.revision === revision', replace: 'held !== undefined' }],
    killedBy: { by: 'test', file: 'test/host-agent/desired.test.ts' },
  },
  {
    name: 'verdict of an earlier placement',
    guard: 'An owner’s verdict is of the placement that was named, and of none after it (A4)',
    file: 'host-agent/fleet.js',
    edits: [{ find: 'placement <= verdict.placement', replace: 'true' }],
    killedBy: { by: 'test', file: 'test/host-agent/fleet.test.ts' },
  },
  {
    name: 'live host forgotten',
    guard: 'A host on which containers may run is removed by force alone (ADR 14)',
    file: 'actors/host/decide.js',
    edits: [{ find: 'if (isEmptied(record, context.fleet))', replace: 'if (true)' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'placed again before silence',
    guard: 'What runs on a fenced host is placed elsewhere when it has stopped for certain (ADR 14)',
    file: 'actors/host/decide.js',
    edits: [{ find: 'silentMs(key) >= untilMs && ', replace: '' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'fenced host believed',
    guard: 'What a fenced host reports changes nothing (A7)',
    file: 'actors/hosts.js',
    edits: [{ find: "if (fleet.standing(host) === 'fenced')\n        return 'unavailable';", replace: '' }],
    killedBy: { by: 'test', file: 'test/actors/owner.test.ts' },
  },
  {
    name: 'moved off a fenced host',
    guard: 'Nothing is placed elsewhere while its host is fenced, drained or not (ADR 14)',
    file: 'actors/container/observe.js',
    edits: [{ find: "if (standing === 'fenced')", replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/container.test.ts' },
  },
  {
    name: 'uncommitted verdict',
    guard: 'A host hears that its container was given away after the commit (A3)',
    file: 'actors/runtime/partition.js',
    edits: [{ find: '[hostDirt(host), ...others]', replace: '[hostDirt(host)]' }],
    killedBy: { by: 'test', file: 'test/actors/runtime.test.ts' },
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
  {
    name: 'report of another generation taken',
    guard: 'A report counts only for the generation that is wanted now (A2)',
    file: 'actors/container/observe.js',
    edits: [{ find: 'item.generation !== record.generation || ', replace: '' }],
    killedBy: decisions,
  },
  {
    name: 'older report taken',
    guard: 'A report never replaces a newer one (A5)',
    file: 'actors/container/observe.js',
    edits: [{ find: '!isNewer(order, known)', replace: 'false' }],
    killedBy: decisions,
  },
  {
    name: 'report of any host believed',
    guard: 'A report is believed only of the host that the record names (A7)',
    file: 'actors/container/observe.js',
    edits: [{ find: ' || record.placement.host !== host', replace: '' }],
    killedBy: decisions,
  },
  {
    name: 'status of the control plane taken from a host',
    guard: 'An agent reports what it sees; the other statuses are the control plane’s (A2)',
    file: 'actors/container/observe.js',
    edits: [{ find: '!reportable.has(item.observation.status)', replace: 'false' }],
    killedBy: decisions,
  },
  {
    name: 'gone while wanted',
    guard: 'A container goes when its removal was asked for, whatever its host says (A5)',
    file: 'actors/container/observe.js',
    edits: [{ find: "item.gone && record.desired === 'removed'", replace: 'item.gone' }],
    killedBy: decisions,
  },
  {
    name: 'repetition committed',
    guard: 'What a new session says again is not written again (ADR 15)',
    file: 'actors/container/observe.js',
    edits: [{ find: 'order.session !== known.session &&', replace: 'false &&' }],
    killedBy: { by: 'test', file: 'test/actors/reports.test.ts' },
  },
  {
    name: 'same observation, later number, not committed',
    guard: 'In one session the order of equal observations is committed: another may be under way (ADR 15)',
    file: 'actors/container/observe.js',
    edits: [{ find: 'order.session !== known.session &&', replace: '' }],
    killedBy: decisions,
  },
  {
    name: 'session that is over believed',
    guard: 'A report of an older session is refused, also by an owner that heard none of the newer (ADR 15)',
    file: 'actors/hosts.js',
    edits: [{ find: "session < (fleet.session(host) ?? 0) ? 'stale_session'", replace: "false ? 'stale_session'" }],
    killedBy: { by: 'test', file: 'test/actors/reports.test.ts' },
  },
  {
    name: 'key renewed that is no longer enrolled',
    guard: 'Credentials go to the key that is enrolled when the hello is committed (A7)',
    file: 'actors/hosts.js',
    edits: [{ find: 'jwt !== undefined && isDue(state)', replace: 'jwt !== undefined' }],
    killedBy: { by: 'test', file: 'test/actors/reports.test.ts' },
  },
  {
    name: 'placed on a host without an engine',
    guard: 'A host whose engine is away takes no container (ADR 15)',
    file: 'actors/placement.js',
    edits: [{ find: 'host.hasEngine &&', replace: '' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'heartbeat of a session that is over',
    guard: 'A heartbeat of an older session says nothing of its host (A7)',
    file: 'actors/fleet.js',
    edits: [{ find: 'before !== undefined && before.session > beat.session', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/actors/fleet.test.ts' },
  },
  {
    name: 'older directory taken',
    guard: 'An older message of the directory never replaces a newer one (A3)',
    file: 'actors/fleet.js',
    edits: [{ find: 'isOlder(message, known)', replace: 'false' }],
    killedBy: { by: 'test', file: 'test/actors/fleet.test.ts' },
  },
  {
    name: 'container found by its id alone',
    guard: 'A record is reached through the tenant in the token (A6)',
    file: 'actors/container/decide.js',
    edits: [
      {
        find: 'const record = tenant.containers.get(ask.id);\n    if',
        replace:
          'const record = [...state.tenants()].flatMap((each) => [...each.containers.values()]).find(({ id }) => id === ask.id);\n    if',
      },
    ],
    killedBy: decisions,
  },
  {
    name: 'tenant from the query',
    guard: 'The tenant of a request is the token’s (A6)',
    file: 'gateway/call.js',
    edits: [
      {
        find: 'call.identity?.tenant ??',
        replace: "new URLSearchParams(call.exchange.head.query).get('tenant_id') ?? call.identity?.tenant ??",
      },
    ],
    killedBy: { by: 'test', file: 'test/gateway/contract.test.ts' },
  },
  {
    name: 'name taken twice',
    guard: 'A name is free or taken in the turn that takes it (A2)',
    file: 'actors/container/decide.js',
    edits: [{ find: 'if (tenant.names.has(ask.spec.name))', replace: 'if (false)' }],
    killedBy: decisions,
  },
  {
    name: 'caps of the tenant not looked at',
    guard: 'No quota is exceeded by a create (A5)',
    file: 'actors/container/decide.js',
    edits: [{ find: 'if (overTenant !== undefined)', replace: 'if (false)' }],
    killedBy: decisions,
  },
  {
    name: 'caps of a region not looked at in placement',
    guard: 'No quota is exceeded by a placement (A5)',
    file: 'actors/container/transitions.js',
    edits: [{ find: 'excessInRegion(tenant, region, amounts) === undefined', replace: 'true' }],
    killedBy: decisions,
  },
  {
    name: 'any join token enrols',
    guard: 'A host is enrolled by its own token (A7)',
    file: 'actors/host/decide.js',
    edits: [{ find: ' || join.tokenHash !== ask.joinTokenHash', replace: '' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'join token used twice',
    guard: 'A join token is spent by the key that it enrolled (A7)',
    file: 'actors/host/decide.js',
    edits: [{ find: 'return join.spentBy === null || join.spentBy === ask.publicKey;', replace: 'return true;' }],
    killedBy: { by: 'test', file: 'test/actors/host.test.ts' },
  },
  {
    name: 'agent sees every container',
    guard: 'An agent sees only what bears its cluster and its host (A4)',
    file: 'host-agent/spec.js',
    edits: [
      {
        find: '({ cluster, host }) => ({ [labels.cluster]: cluster, [labels.host]: host })',
        replace: '() => ({})',
      },
    ],
    killedBy: { by: 'test', file: 'test/host-agent/ours.test.ts' },
  },
  {
    name: 'agent sees other hosts of its cluster',
    guard: 'Two agents on one engine see their own containers (A4)',
    file: 'host-agent/spec.js',
    edits: [{ find: '[labels.cluster]: cluster, [labels.host]: host', replace: '[labels.cluster]: cluster' }],
    killedBy: { by: 'test', file: 'test/host-agent/ours.test.ts' },
  },
  {
    name: 'adopted under another placement',
    guard: 'What was made under an earlier placement is not this container (A5)',
    file: 'host-agent/plan.js',
    edits: [{ find: 'found.placement !== container.placement || ', replace: '' }],
    killedBy: { by: 'test', file: 'test/host-agent/plan.test.ts' },
  },
  {
    name: 'inbox that can be guessed',
    guard: 'A sync answer counts only in the inbox of its own question (A7)',
    file: 'host-agent/sync.js',
    edits: [{ find: "randomBytes(16).toString('hex')", replace: "'0'.repeat(32)" }],
    killedBy: { by: 'test', file: 'test/host-agent/ours.test.ts' },
  },
  {
    name: 'damaged record’s container removed',
    guard: 'What a damaged record may speak of is left as it is (A4)',
    file: 'host-agent/fleet.js',
    edits: [
      { find: 'entries.has(id) || damaged.has(id)', replace: 'entries.has(id)' },
      { find: 'if (damaged.has(id))', replace: 'if (false)' },
    ],
    killedBy: { by: 'test', file: 'test/host-agent/fleet.test.ts' },
  },
  {
    name: 'host may speak for others',
    guard: 'The NATS server holds a host to its own subjects (A7)',
    file: 'lib/host-credentials.js',
    edits: [{ find: '`agent.${host}.${user}.*`', replace: "'agent.>'" }],
    killedBy: { by: 'test', file: 'test/deploy/nats.test.ts' },
  },
  {
    name: 'log lines of any host',
    guard: 'Log lines count only from the hosts that a container was placed on (A7)',
    file: 'gateway/streams/logs.js',
    edits: [
      {
        find: 'this.#reader.newest(subjects.hostLog(host, tenant, id)',
        replace: "this.#reader.newest(subjects.hostLog('*', tenant, id)",
      },
    ],
    killedBy: { by: 'test', file: 'test/gateway/streams.test.ts' },
  },
  {
    name: 'digest not compared',
    guard: 'Records that are not those of the checkpoint are not served (ADR 11)',
    file: 'actors/runtime/load.js',
    edits: [{ find: "if (typeof stored === 'object')", replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/load.test.ts' },
  },
  {
    name: 'digest not kept',
    guard: 'The digest moves with the records that it counts, in one batch (ADR 11)',
    file: 'actors/runtime/checkpoint.js',
    edits: [{ find: 'digest.set(key, value);', replace: '' }],
    killedBy: simulation,
  },
  {
    name: 'shapes not checked',
    guard: 'A record of the wrong shape is quarantined, and its partition serves (ADR 11)',
    file: 'actors/runtime/load.js',
    edits: [{ find: 'isWellFormed(decoded.value) && ', replace: '' }],
    killedBy: { by: 'test', file: 'test/actors/load.test.ts' },
  },
  {
    name: 'load in one go',
    guard: 'A load gives way to the renewal of the lease (ADR 11)',
    file: 'lib/slices.js',
    edits: [{ find: 'while (result.done !== true && !isOver());', replace: 'while (result.done !== true);' }],
    killedBy: { by: 'test', file: 'test/lib/slices.test.ts' },
  },
  {
    name: 'loads that lose the lease repeated at once',
    guard: 'Who loses its lease in load after load rests before the next (ADR 11)',
    file: 'actors/keeper.js',
    edits: [{ find: 'if (count >= limits.loadsRevoked)', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/sim/keeper.test.ts' },
  },
  {
    name: 'refusal not heard',
    guard: 'A partition is not given to a process that can not load it (ADR 11)',
    file: 'actors/members/membership.js',
    edits: [{ find: 'this.#others.get(id)?.record?.refused?.includes(partition) !== true', replace: 'true' }],
    killedBy: { by: 'test', file: 'test/sim/keeper.test.ts' },
  },
  {
    name: 'fair share trimmed',
    guard: 'A host within its fair share of a stream, and a tenant within its share of that, loses nothing (ADR 23)',
    file: 'actors/budgets-decide.js',
    edits: [{ find: 'return share;', replace: 'return share / 2;' }],
    killedBy: { by: 'test', file: 'test/actors/budgets.test.ts' },
  },
  {
    name: 'subjects read without their escapes',
    guard: 'A host counts for no other, whatever it puts into a subject (ADR 23)',
    file: 'actors/budgets-count.js',
    edits: [{ find: '"((?:[^"\\\\]|\\\\.)*)":', replace: '"([^"]*)":' }],
    killedBy: { by: 'test', file: 'test/actors/budgets.test.ts' },
  },
  {
    name: 'nobody’s messages left out of a host’s budget',
    guard: 'Whatever a host writes is in its own budget (ADR 23)',
    file: 'actors/budgets-count.js',
    edits: [{ find: 'count.nameless += messages;', replace: ';' }],
    killedBy: { by: 'test', file: 'test/actors/budgets.test.ts' },
  },
  {
    name: 'log lines counted before encoding',
    guard: 'Blocks of log lines are bounded as they are sent (ADR 23)',
    file: 'host-agent/logs/block.js',
    edits: [{ find: 'line.ts.length + Buffer.byteLength(text);', replace: 'line.ts.length + line.bytes;' }],
    killedBy: { by: 'test', file: 'test/host-agent/log-lines.test.ts' },
  },
  {
    name: 'spool that drops the oldest of all',
    guard: 'A tenant that fills the spool loses its own lines (ADR 23)',
    file: 'host-agent/logs/spool.js',
    edits: [{ find: 'return entries.find(({ source }) => source.tenant === largest);', replace: 'return entries[0];' }],
    killedBy: { by: 'test', file: 'test/host-agent/parts.test.ts' },
  },
  {
    name: 'turns without rounds',
    guard: 'A noisy container delays nobody else’s log lines (ADR 23)',
    file: 'host-agent/logs/rates.js',
    edits: [{ find: 'waiting.delete(tenant);\n            if (queue', replace: 'if (queue' }],
    killedBy: { by: 'test', file: 'test/host-agent/log-rates.test.ts' },
  },
  {
    name: 'work of a message in one go',
    guard: 'What a message asks for gives way to other work (ADR 11)',
    file: 'lib/slices.js',
    edits: [{ find: 'while (tookMs < leftMs)', replace: 'while (true)' }],
    killedBy: { by: 'test', file: 'test/lib/slices.test.ts' },
  },
  {
    name: 'report acknowledged early',
    guard: 'A report is acknowledged when all of it is committed (A3)',
    file: 'actors/hosts.js',
    edits: [{ find: 'if (--turnsLeft === 0)', replace: 'if (--turnsLeft >= 0)' }],
    killedBy: { by: 'test', file: 'test/actors/blocks.test.ts' },
  },
  {
    name: 'unloadable partition kept',
    guard: 'Who can not load a partition releases it (ADR 11)',
    file: 'actors/runtime/ownership.js',
    edits: [
      {
        find: 'refusals === limits.loadAttempts || attempt === limits.loadAttemptsMax',
        replace: 'false',
      },
    ],
    killedBy: { by: 'test', file: 'test/sim/keeper.test.ts' },
  },
  {
    name: 'the registry of a pull not asked about',
    guard: 'The engine is sent to no registry that the operator does not allow',
    file: 'host-agent/pulls.js',
    edits: [{ find: 'await permit(registryOf(reference));', replace: '' }],
    killedBy: { by: 'test', file: 'test/host-agent/parts.test.ts' },
  },
  {
    name: 'the registries of a tenant not looked at in a create',
    guard: 'A container names no registry that its tenant may not use',
    file: 'actors/container/decide.js',
    edits: [{ find: 'if (!mayPullInSome(tenant, regions, ask.spec))', replace: 'if (false)' }],
    killedBy: { by: 'test', file: 'test/actors/registries.test.ts' },
  },
  {
    name: 'rules that were taken away not mended',
    guard: 'Containers stay behind the firewall that the agent set (ADR 20)',
    file: 'host-agent/firewall.js',
    edits: [{ find: 'if (listed !== undefined && withoutCounts(listed) === placed.shown)', replace: 'if (true)' }],
    killedBy: { by: 'test', file: 'test/host-agent/firewall-keeper.test.ts' },
  },
  {
    name: 'containers started without the firewall that is required',
    guard: 'CONTAINER_FIREWALL=required starts nothing that the firewall does not cover (ADR 20)',
    file: 'host-agent/firewall.js',
    edits: [{ find: "mode === 'required' && state", replace: 'false && state' }],
    killedBy: { by: 'test', file: 'test/host-agent/firewall-keeper.test.ts' },
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
