/**
 * A request's body as it arrives: held up to the bound of its route, dropped beyond it or where nobody wants it. A reply
 * that is ready before the body is whole waits for the rest only as long as the client keeps sending, within a time and
 * a number of bytes: a client that sends first and reads afterwards hears the status, and one that sends half a body
 * holds nothing up.
 */
import type { Clock } from '../../lib/clock.ts';
import { limits } from '../../schemas/limits.ts';

/** `no_room`: too many bodies are held at once. `too_late`: it was not whole in time. */
export type BodyResult = Uint8Array | 'too_large' | 'no_room' | 'too_late';

/** The bodies of a server: the bytes that they hold together, and those whose end is waited for. */
export class Bodies {
  heldBytes = 0;
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
  | { readonly phase: 'holding'; readonly chunks: Uint8Array[] }
  | { readonly phase: 'dropping'; readonly why: 'too_large' | 'no_room' | 'unwanted' }
  | { readonly phase: 'ended'; readonly result: BodyResult; readonly whole: boolean };

const nothing = new Uint8Array(0);
const endedEmpty: State = { phase: 'ended', result: nothing, whole: true };

export class Body {
  /** As the client declared it; undefined where only the end will tell. */
  readonly declaredBytes: number | undefined;
  readonly beganAtMs: number;
  readonly #bodies: Bodies;
  #state: State;
  #maxBytes: number = limits.bodyBytes;
  #seenBytes = 0;
  #heldBytes = 0;
  #drainedFromMs = 0;
  #lastChunkAtMs = 0;
  #onKnown: (() => void) | undefined;
  #onEnded: (() => void) | undefined;

  constructor(bodies: Bodies, declaredBytes: number | undefined) {
    this.#bodies = bodies;
    this.declaredBytes = declaredBytes;
    this.#state = declaredBytes === 0 ? endedEmpty : { phase: 'holding', chunks: [] };
    this.beganAtMs = declaredBytes === 0 ? 0 : bodies.clock.monotonicMs();
    if (declaredBytes === 0) return;
    bodies.arriving.add(this);
    this.expect(limits.bodyBytes);
  }

  /** How much of it will be wanted; said before any of it has come. */
  expect(maxBytes: number): void {
    this.#maxBytes = maxBytes;
    if (this.#state.phase !== 'holding') return;
    if (maxBytes === 0) this.discard();
    else if (this.declaredBytes !== undefined && this.declaredBytes > maxBytes) this.#drop('too_large');
  }

  /** A chunk as it came; it is copied. */
  push(chunk: Uint8Array, last: boolean): void {
    if (this.#state.phase === 'ended') return;
    this.#seenBytes += chunk.byteLength;
    if (this.#bodies.draining.has(this)) this.#lastChunkAtMs = this.#bodies.clock.monotonicMs();
    if (this.#state.phase === 'holding' && chunk.byteLength > 0) this.#hold(this.#state.chunks, chunk);
    if (last) this.#end(true);
    else if (this.#seenBytes > limits.bodyDiscardBytes) this.#end(false);
  }

  #hold(chunks: Uint8Array[], chunk: Uint8Array): void {
    if (this.#heldBytes + chunk.byteLength > this.#maxBytes) this.#drop('too_large');
    else if (this.#bodies.heldBytes + chunk.byteLength > limits.bodiesHeldBytes) this.#drop('no_room');
    else {
      chunks.push(chunk.slice());
      this.#heldBytes += chunk.byteLength;
      this.#bodies.heldBytes += chunk.byteLength;
    }
  }

  #drop(why: 'too_large' | 'no_room' | 'unwanted'): void {
    this.#letGo();
    this.#state = { phase: 'dropping', why };
    this.#tellKnown();
  }

  #end(whole: boolean, verdict?: 'too_late'): void {
    const state = this.#state;
    if (state.phase === 'ended') return;
    const result =
      state.phase === 'dropping' ? (state.why === 'unwanted' ? nothing : state.why) : (verdict ?? joined(state.chunks));
    this.#state = { phase: 'ended', result, whole };
    this.#letGo();
    this.#forget();
    this.#tellKnown();
    this.#onEnded?.();
  }

  #tellKnown(): void {
    const listener = this.#onKnown;
    this.#onKnown = undefined;
    listener?.();
  }

  #letGo(): void {
    this.#bodies.heldBytes -= this.#heldBytes;
    this.#heldBytes = 0;
  }

  #forget(): void {
    this.#bodies.arriving.delete(this);
    this.#bodies.draining.delete(this);
  }

  /** Nobody will ask for it: what is held is let go, and what follows is dropped. */
  discard(): void {
    if (this.#state.phase === 'holding') this.#drop('unwanted');
  }

  /** A reply waits for its end, which comes soon: whole, or because the client has stopped sending, or sends for long. */
  drain(): void {
    if (this.#state.phase === 'ended') return;
    this.discard();
    const isHopeless = this.declaredBytes !== undefined && this.declaredBytes > limits.bodyDiscardBytes;
    if (isHopeless || this.#bodies.draining.size >= limits.bodiesDraining) {
      this.#end(false);
      return;
    }
    this.#drainedFromMs = this.#lastChunkAtMs = this.#bodies.clock.monotonicMs();
    this.#bodies.draining.add(this);
  }

  isOver(nowMs: number): boolean {
    return nowMs - this.#lastChunkAtMs >= limits.bodyQuietMs || nowMs - this.#drainedFromMs >= limits.bodyDrainMs;
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

  /** Calls back once it is whole, or known never to be of use. One listener. */
  whenKnown(listener: (result: BodyResult) => void): void {
    const tell = (): void => listener(this.#result());
    if (this.#state.phase === 'holding') this.#onKnown = tell;
    else tell();
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

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
}
