/**
 * A request's body as it arrives: held up to the bound of its route, dropped beyond it or where
 * nobody wants it. A reply that is ready before the body is whole waits for the rest only as long
 * as the client keeps sending, within a time and a number of bytes: a client that sends first and
 * reads afterwards hears the status, and one that sends half a body holds nothing up. Chunks
 * without a declared length are not waited for.
 *
 * Each piece costs a call from native code however small it is, so a body comes in a bounded number
 * of them.
 */
import type { Clock } from '../../../lib/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { Seats, type Seat, type Unseated } from '../seats.ts';

/** `too_late`: it was not whole in time. `Unseated`: unfinished bodies take too much memory. */
export type BodyRefusal = 'too_large' | 'too_many_pieces' | 'too_late' | Unseated;
export type BodyResult = Uint8Array | BodyRefusal;

/**
 * The bodies of a server: the memory that they take together, and those whose end is waited for.
 */
export class Bodies {
  /** In bytes. */
  readonly room = new Seats({
    inAll: limits.bodiesHeldBytes,
    perClient: limits.bodiesHeldPerClientBytes,
    perTenant: limits.bodiesHeldPerTenantBytes,
  });
  readonly clock: Clock;
  /** Not whole yet, the oldest first. */
  readonly arriving = new Set<Body>();
  /** Of those, the ones that a reply waits for. */
  readonly draining = new Set<Body>();
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  start(): void {
    this.#timer = setInterval(() => this.#sweep(), limits.bodySweepMs).unref();
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

type State =
  | { readonly phase: 'holding' }
  | { readonly phase: 'dropping'; readonly why: BodyRefusal | 'unwanted' }
  | { readonly phase: 'ended'; readonly result: BodyResult; readonly whole: boolean };

const nothing = new Uint8Array(0);
const holding: State = { phase: 'holding' };
const endedEmpty: State = { phase: 'ended', result: nothing, whole: true };

export class Body {
  /** As the client declared it; undefined where only the end will tell. */
  readonly declaredBytes: number | undefined;
  readonly beganAtMs: number;
  readonly #bodies: Bodies;
  #state: State;
  #maxBytes: number = limits.bodyBytes;
  #client = '';
  #tenant: string | undefined;
  /** Where it is held: the first `#length` bytes. */
  #buffer = nothing;
  #length = 0;
  /** As large as the buffer. */
  #seat: Seat | undefined;
  #seenBytes = 0;
  #pieces = 0;
  #drainedFromMs = 0;
  #lastPieceAtMs = 0;
  #onKnown: ((result: BodyResult) => void) | undefined;
  #onEnded: (() => void) | undefined;

  constructor(bodies: Bodies, declaredBytes: number | undefined) {
    this.#bodies = bodies;
    this.declaredBytes = declaredBytes;
    this.#state = declaredBytes === 0 ? endedEmpty : holding;
    this.beganAtMs = declaredBytes === 0 ? 0 : bodies.clock.monotonicMs();
    if (declaredBytes === 0) return;
    bodies.arriving.add(this);
    this.#refuseTooLarge();
  }

  /**
   * How much of it will be wanted, and from which client it comes; said before any of it has come.
   */
  expect(maxBytes: number, client: string): void {
    this.#maxBytes = maxBytes;
    this.#client = client;
    if (maxBytes === 0) this.discard();
    else this.#refuseTooLarge();
  }

  #refuseTooLarge(): void {
    const isTooLarge = this.declaredBytes !== undefined && this.declaredBytes > this.#maxBytes;
    if (isTooLarge && this.#state.phase === 'holding') this.#drop('too_large');
  }

  /** The tenant whose memory it takes, too; known later than the client. */
  claim(tenant: string): void {
    this.#tenant = tenant;
    const refusal = this.#seat?.claim(tenant);
    if (refusal === undefined) return;
    if (this.#state.phase === 'holding') this.#drop(refusal);
    else this.#settle(refusal);
  }

  /**
   * A piece as it came; it is copied. False: there are so many that the connection is not worth a
   * reply.
   */
  push(piece: Uint8Array, last: boolean): boolean {
    this.#pieces++;
    if (this.#state.phase !== 'ended') this.#take(piece, last);
    return this.#pieces <= 2 * limits.bodyPieces;
  }

  #take(piece: Uint8Array, last: boolean): void {
    this.#seenBytes += piece.byteLength;
    if (this.#bodies.draining.has(this)) this.#lastPieceAtMs = this.#bodies.clock.monotonicMs();
    const isWhole = last || this.#seenBytes === this.declaredBytes;
    const isInPieces = this.#pieces > limits.bodyPieces;
    if (this.#state.phase === 'holding' && piece.byteLength > 0) {
      const refusal = isInPieces ? 'too_many_pieces' : this.#hold(piece, isWhole);
      if (refusal !== undefined) this.#drop(refusal);
    }
    if (isWhole) this.#end(true);
    else if (isInPieces || this.#seenBytes > limits.bodyDiscardBytes) this.#end(false);
  }

  #hold(piece: Uint8Array, isWhole: boolean): BodyRefusal | undefined {
    const length = this.#length + piece.byteLength;
    if (length > this.#maxBytes) return 'too_large';
    if (isWhole && this.#length === 0 && this.#onKnown !== undefined) {
      // Whole at once and awaited: no room is taken for no time.
      this.#buffer = new Uint8Array(piece);
    } else {
      const refusal = this.#makeRoom(length, isWhole);
      if (refusal !== undefined) return refusal;
      this.#buffer.set(piece, this.#length);
    }
    this.#length = length;
    return undefined;
  }

  /**
   * The buffer doubles, up to what may still come; a length that is only declared takes no memory.
   */
  #makeRoom(length: number, isWhole: boolean): Unseated | undefined {
    const had = this.#buffer.byteLength;
    if (length <= had) return undefined;
    const mostBytes = this.declaredBytes ?? this.#maxBytes;
    const capacity = isWhole ? length : Math.max(length, Math.min(2 * had, mostBytes));
    const refusal = this.#takeRoom(capacity - had);
    if (refusal !== undefined) return refusal;
    const buffer = new Uint8Array(capacity);
    buffer.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = buffer;
    return undefined;
  }

  #takeRoom(bytes: number): Unseated | undefined {
    if (this.#seat !== undefined) return this.#seat.grow(bytes);
    const seat = this.#bodies.room.take(this.#client, bytes);
    if (typeof seat === 'string') return seat;
    this.#seat = seat;
    return this.#tenant === undefined ? undefined : seat.claim(this.#tenant);
  }

  #drop(why: BodyRefusal | 'unwanted'): void {
    this.#letGo();
    this.#state = { phase: 'dropping', why };
    this.#tellKnown();
  }

  #end(whole: boolean, verdict?: 'too_late'): void {
    const state = this.#state;
    if (state.phase === 'ended') return;
    const held = this.#length === this.#buffer.byteLength ? this.#buffer : this.#buffer.subarray(0, this.#length);
    const result = state.phase === 'holding' ? (verdict ?? held) : state.why === 'unwanted' ? nothing : state.why;
    this.#state = { phase: 'ended', result, whole };
    if (typeof result === 'string') this.#letGo();
    this.#forget();
    this.#tellKnown();
    this.#onEnded?.();
  }

  #tellKnown(): void {
    const listener = this.#onKnown;
    this.#onKnown = undefined;
    if (listener !== undefined) this.#tell(listener);
  }

  /** From here on it is the listener's. */
  #tell(listener: (result: BodyResult) => void): void {
    const result = this.#result();
    this.#settle(nothing);
    listener(result);
  }

  /** Of a body that has ended: lets go what it holds, in favour of another result. */
  #settle(result: BodyResult): void {
    this.#letGo();
    if (this.#state.phase === 'ended') this.#state = { phase: 'ended', result, whole: this.#state.whole };
  }

  #letGo(): void {
    this.#seat?.leave();
    this.#seat = undefined;
    this.#buffer = nothing;
  }

  #forget(): void {
    this.#bodies.arriving.delete(this);
    this.#bodies.draining.delete(this);
  }

  /** Nothing will read the body: drops what has come and what follows. */
  discard(): void {
    if (this.#state.phase === 'holding') this.#drop('unwanted');
    else if (this.#seat !== undefined) this.#settle(nothing);
  }

  /**
   * A reply waits for its end, which comes soon: whole, or because the client has stopped sending,
   * or sends for long. Where no length is declared it comes at once: a client may cut what it sends
   * into chunks as small as it likes.
   */
  drain(): void {
    if (this.#state.phase === 'ended') return;
    this.discard();
    const isHopeless = this.declaredBytes === undefined || this.declaredBytes > limits.bodyDiscardBytes;
    if (isHopeless || this.#bodies.draining.size >= limits.bodiesDraining) {
      this.#end(false);
      return;
    }
    this.#drainedFromMs = this.#lastPieceAtMs = this.#bodies.clock.monotonicMs();
    this.#bodies.draining.add(this);
  }

  isOver(nowMs: number): boolean {
    return nowMs - this.#lastPieceAtMs >= limits.bodyQuietMs || nowMs - this.#drainedFromMs >= limits.bodyDrainMs;
  }

  giveUp(why: 'too_late'): void {
    this.#end(false, why);
  }

  /** No more will come. */
  abort(): void {
    this.#letGo();
    this.#forget();
    this.#onKnown = undefined;
    this.#onEnded = undefined;
    if (this.#state.phase !== 'ended') this.#state = { phase: 'ended', result: nothing, whole: false };
  }

  /** Calls back once it is whole, or known never to be of use. One listener, once. */
  whenKnown(listener: (result: BodyResult) => void): void {
    if (this.#state.phase === 'holding') this.#onKnown = listener;
    else this.#tell(listener);
  }

  /** Calls back once nothing more is read: at once, or later. One listener. */
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
    return state.phase === 'dropping' && state.why !== 'unwanted' ? state.why : nothing;
  }

  /** False: bytes of it may still be on the wire, so the connection can't be used again. */
  whole(): boolean {
    return this.#state.phase === 'ended' && this.#state.whole;
  }
}
