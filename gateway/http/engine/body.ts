/**
 * A request's body as it arrives: held up to the bound of its route; bytes beyond that, or for a
 * route without a body, are dropped. A reply that is ready before the body is complete waits while
 * the client keeps sending, up to a time and a number of bytes. So a client that reads only after
 * it has sent everything gets the status, and one that sends half a body blocks nothing. A reply
 * does not wait for a chunked body, whose length is not declared.
 *
 * Each piece costs a call from native code, however small it is, so the number of pieces is
 * bounded.
 */
import type { Clock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { MiB } from '../../../schemas/limits/units.ts';
import { Permits, type Permit, type NoPermit } from '../../../lib/permits.ts';

/** Interval at which bodies that are late are looked for. */
const bodySweepMs = 100;
/**
 * Replies that wait for the end of a body at once; any other is sent at once and ends its
 * connection.
 */
const bodiesDraining = 512;

/**
 * A body that is refused is read up to this length, so that its sender reads the reply; then the
 * connection ends.
 */
const bodyDiscardBytes = 8 * MiB;

/**
 * `too_late`: the body was not complete in time. `NoPermit`: unfinished bodies take too much
 * memory.
 */
export type BodyRefusal = 'too_large' | 'too_many_pieces' | 'too_late' | NoPermit;
export type BodyResult = Uint8Array | BodyRefusal;

/** The bodies of a server: the memory that they take together, and their deadlines. */
export class Bodies {
  /** The memory for bodies: one permit is one byte. */
  readonly room = new Permits({
    inAll: limits.bodiesHeldBytes,
    perClient: limits.bodiesHeldPerClientBytes,
    perTenant: limits.bodiesHeldPerTenantBytes,
  });
  readonly clock: Clock;
  /** Bodies that are not complete yet, the oldest first. */
  readonly arriving = new Set<Body>();
  /** The bodies among them that a reply waits for. */
  readonly draining = new Set<Body>();
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  start(): void {
    this.#timer = setInterval(() => this.#sweep(), bodySweepMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #sweep(): void {
    const nowMs = this.clock.monotonicMs();
    for (const body of this.arriving) {
      if (nowMs - body.beganAtMs < limits.bodyMs) break;
      body.giveUp('too_late');
    }
    for (const body of this.draining) if (body.isOver(nowMs)) body.giveUp('too_late');
  }
}

/** The reason why the bytes of a body are dropped. */
type Loss = BodyRefusal | 'unwanted';

type State =
  | { readonly phase: 'holding' }
  | { readonly phase: 'dropping'; readonly why: Loss }
  /** A reply waits for the end of the body. */
  | { readonly phase: 'draining'; readonly why: Loss; readonly fromMs: number; lastPieceMs: number }
  | { readonly phase: 'ended'; readonly result: BodyResult; readonly whole: boolean };

const nothing = new Uint8Array(0);

/**
 * The bytes of one body that have arrived, in one buffer that counts against the memory for bodies.
 */
class HeldBytes {
  readonly #room: Permits;
  #client = '';
  #tenant: string | undefined;
  /** The first `#length` bytes are the body's. */
  #buffer = nothing;
  #length = 0;
  /** The buffer's share of the memory. */
  #permit: Permit | undefined;

  constructor(room: Permits) {
    this.#room = room;
  }

  get length(): number {
    return this.#length;
  }

  takesRoom(): boolean {
    return this.#permit !== undefined;
  }

  /** Counts the bytes against this client's share of the memory. */
  belongTo(client: string): void {
    this.#client = client;
  }

  /** Counts the bytes against the tenant's share, too. */
  claim(tenant: string): NoPermit | undefined {
    this.#tenant = tenant;
    return this.#permit?.claim(tenant);
  }

  /**
   * Copies a piece. The buffer doubles as it fills, up to the most that may still come; a length
   * that is only declared takes no memory.
   */
  append(piece: Uint8Array, isLast: boolean, mostBytes: number): NoPermit | undefined {
    const length = this.#length + piece.byteLength;
    const had = this.#buffer.byteLength;
    if (length > had) {
      const capacity = isLast ? length : Math.max(length, Math.min(2 * had, mostBytes));
      const refusal = this.#takeRoom(capacity - had);
      if (refusal !== undefined) return refusal;
      const buffer = new Uint8Array(capacity);
      buffer.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = buffer;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = length;
    return undefined;
  }

  /** Copies a complete body that is read at once, so it does not count against the memory. */
  pass(whole: Uint8Array): void {
    this.#buffer = new Uint8Array(whole);
    this.#length = whole.byteLength;
  }

  bytes(): Uint8Array {
    return this.#length === this.#buffer.byteLength ? this.#buffer : this.#buffer.subarray(0, this.#length);
  }

  /** Forgets the bytes; the caller keeps those that `bytes` returned. */
  release(): void {
    this.#permit?.release();
    this.#permit = undefined;
    this.#buffer = nothing;
    this.#length = 0;
  }

  #takeRoom(bytes: number): NoPermit | undefined {
    if (this.#permit !== undefined) return this.#permit.grow(bytes);
    const permit = this.#room.take(this.#client, bytes);
    if (typeof permit === 'string') return permit;
    this.#permit = permit;
    return this.#tenant === undefined ? undefined : permit.claim(this.#tenant);
  }
}

const holding: State = { phase: 'holding' };
const endedEmpty: State = { phase: 'ended', result: nothing, whole: true };

export class Body {
  /** The length that the client declared; undefined for a chunked body. */
  readonly declaredBytes: number | undefined;
  readonly beganAtMs: number;
  readonly #bodies: Bodies;
  readonly #held: HeldBytes;
  #state: State;
  /** At first the most that any route takes. */
  #maxBytes: number = limits.documentBytes;
  #seenBytes = 0;
  #pieces = 0;
  #onKnown: ((result: BodyResult) => void) | undefined;
  #onEnded: (() => void) | undefined;

  constructor(bodies: Bodies, declaredBytes: number | undefined) {
    this.#bodies = bodies;
    this.declaredBytes = declaredBytes;
    this.#held = new HeldBytes(bodies.room);
    this.#state = declaredBytes === 0 ? endedEmpty : holding;
    this.beganAtMs = declaredBytes === 0 ? 0 : bodies.clock.monotonicMs();
    if (declaredBytes === 0) return;
    bodies.arriving.add(this);
    this.#refuseTooLarge();
  }

  /**
   * Sets how much of the body the route takes, and from which client it comes; called before any of
   * it has arrived.
   */
  expect(maxBytes: number, client: string): void {
    this.#maxBytes = maxBytes;
    this.#held.belongTo(client);
    if (maxBytes === 0) this.discard();
    else this.#refuseTooLarge();
  }

  #refuseTooLarge(): void {
    const isTooLarge = this.declaredBytes !== undefined && this.declaredBytes > this.#maxBytes;
    if (isTooLarge && this.#state.phase === 'holding') this.#drop('too_large');
  }

  /**
   * Counts the body against the tenant's share of the memory, too; the tenant is known later than
   * the client.
   */
  claim(tenant: string): void {
    const refusal = this.#held.claim(tenant);
    if (refusal === undefined) return;
    if (this.#state.phase === 'holding') this.#drop(refusal);
    else this.#settle(refusal);
  }

  /**
   * Copies a piece. False after too many pieces: the caller closes the connection without a reply.
   */
  push(piece: Uint8Array, last: boolean): boolean {
    this.#pieces++;
    if (this.#state.phase !== 'ended') this.#take(piece, last);
    return this.#pieces <= 2 * limits.bodyPieces;
  }

  #take(piece: Uint8Array, last: boolean): void {
    this.#seenBytes += piece.byteLength;
    if (this.#state.phase === 'draining') this.#state.lastPieceMs = this.#bodies.clock.monotonicMs();
    const isWhole = last || this.#seenBytes === this.declaredBytes;
    const isInPieces = this.#pieces > limits.bodyPieces;
    if (this.#state.phase === 'holding' && piece.byteLength > 0) {
      const refusal = isInPieces ? 'too_many_pieces' : this.#hold(piece, isWhole);
      if (refusal !== undefined) this.#drop(refusal);
    }
    if (isWhole) this.#end(true);
    else if (isInPieces || this.#seenBytes > bodyDiscardBytes) this.#end(false);
  }

  #hold(piece: Uint8Array, isWhole: boolean): BodyRefusal | undefined {
    if (this.#held.length + piece.byteLength > this.#maxBytes) return 'too_large';
    if (!isWhole || this.#held.length > 0 || this.#onKnown === undefined) {
      return this.#held.append(piece, isWhole, this.declaredBytes ?? this.#maxBytes);
    }
    this.#held.pass(piece);
    return undefined;
  }

  #drop(why: Loss): void {
    this.#held.release();
    this.#state = { phase: 'dropping', why };
    this.#tellKnown();
  }

  #end(whole: boolean, verdict?: 'too_late'): void {
    const state = this.#state;
    if (state.phase === 'ended') return;
    const result =
      state.phase === 'holding' ? (verdict ?? this.#held.bytes()) : state.why === 'unwanted' ? nothing : state.why;
    this.#state = { phase: 'ended', result, whole };
    if (typeof result === 'string') this.#held.release();
    this.#forget();
    this.#tellKnown();
    this.#onEnded?.();
  }

  #tellKnown(): void {
    const listener = this.#onKnown;
    this.#onKnown = undefined;
    if (listener !== undefined) this.#tell(listener);
  }

  /** Hands the result to the listener, and keeps no reference to its bytes. */
  #tell(listener: (result: BodyResult) => void): void {
    const result = this.#result();
    this.#settle(nothing);
    listener(result);
  }

  /** Replaces the result of a body that has ended, and releases its bytes. */
  #settle(result: BodyResult): void {
    this.#held.release();
    if (this.#state.phase === 'ended') this.#state = { phase: 'ended', result, whole: this.#state.whole };
  }

  #forget(): void {
    this.#bodies.arriving.delete(this);
    this.#bodies.draining.delete(this);
  }

  /** Nothing will read the body: drops the bytes that have arrived and those that follow. */
  discard(): void {
    if (this.#state.phase === 'holding') this.#drop('unwanted');
    else if (this.#held.takesRoom()) this.#settle(nothing);
  }

  /**
   * A reply waits for the end, which comes soon: when the body is complete, or the client has
   * stopped sending, or has sent for too long. A chunked body ends at once, because a client may
   * make its chunks as small as it likes.
   */
  drain(): void {
    if (this.#state.phase === 'ended') return;
    this.discard();
    const isHopeless = this.declaredBytes === undefined || this.declaredBytes > bodyDiscardBytes;
    if (isHopeless || this.#bodies.draining.size >= bodiesDraining) {
      this.#end(false);
      return;
    }
    const nowMs = this.#bodies.clock.monotonicMs();
    const why = 'why' in this.#state ? this.#state.why : 'unwanted';
    this.#state = { phase: 'draining', why, fromMs: nowMs, lastPieceMs: nowMs };
    this.#bodies.draining.add(this);
  }

  isOver(nowMs: number): boolean {
    const state = this.#state;
    if (state.phase !== 'draining') return false;
    return nowMs - state.lastPieceMs >= limits.bodyQuietMs || nowMs - state.fromMs >= limits.bodyDrainMs;
  }

  giveUp(why: 'too_late'): void {
    this.#end(false, why);
  }

  /** The connection has ended: no more bytes will come. */
  abort(): void {
    this.#held.release();
    this.#forget();
    this.#onKnown = undefined;
    this.#onEnded = undefined;
    if (this.#state.phase !== 'ended') this.#state = { phase: 'ended', result: nothing, whole: false };
  }

  /** Calls back, once, when the body is complete or refused. One listener. */
  whenKnown(listener: (result: BodyResult) => void): void {
    if (this.#state.phase === 'holding') this.#onKnown = listener;
    else this.#tell(listener);
  }

  /** Calls back, now or later, when nothing more will be read. One listener. */
  whenEnded(listener: () => void): void {
    if (this.#state.phase === 'ended') listener();
    else this.#onEnded = listener;
  }

  ended(): boolean {
    return this.#state.phase === 'ended';
  }

  #result(): BodyResult {
    const state = this.#state;
    if (state.phase === 'ended') return state.result;
    return state.phase === 'holding' || state.why === 'unwanted' ? nothing : state.why;
  }

  /**
   * True if all of the body has arrived. If not, its bytes may still be on the wire, so the
   * connection can't be used again.
   */
  whole(): boolean {
    return this.#state.phase === 'ended' && this.#state.whole;
  }
}
