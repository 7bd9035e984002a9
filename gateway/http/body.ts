/**
 * A request's body as it arrives. What is over the bound is read on and dropped, so that its sender hears the refusal
 * instead of a broken connection; far over it, reading ends too.
 */
import { limits } from '../../schemas/limits.ts';

/** `no_room`: too many bodies are held at once. */
export type BodyResult = Uint8Array | 'too_large' | 'no_room';

/** Bytes that all bodies of a server hold together. */
export interface BodyRoom {
  heldBytes: number;
}

type State =
  | { readonly phase: 'holding'; readonly chunks: Uint8Array[] }
  | { readonly phase: 'dropping'; readonly why: 'too_large' | 'no_room' | 'unwanted' }
  | { readonly phase: 'ended'; readonly result: BodyResult; readonly whole: boolean };

const nothing = new Uint8Array(0);
const endedEmpty: State = { phase: 'ended', result: nothing, whole: true };

export class Body {
  readonly #room: BodyRoom;
  #state: State;
  #seenBytes = 0;
  #heldBytes = 0;
  #onEnded: (() => void) | undefined;

  /** `expected`: the declared length; undefined where only the end will tell. */
  constructor(room: BodyRoom, expected: number | undefined) {
    this.#room = room;
    this.#state =
      expected === 0
        ? endedEmpty
        : expected !== undefined && expected > limits.bodyDiscardBytes
          ? { phase: 'ended', result: 'too_large', whole: false }
          : expected !== undefined && expected > limits.bodyBytes
            ? { phase: 'dropping', why: 'too_large' }
            : { phase: 'holding', chunks: [] };
  }

  /** A chunk as it came; it is copied. */
  push(chunk: Uint8Array, last: boolean): void {
    if (this.#state.phase === 'ended') return;
    this.#seenBytes += chunk.byteLength;
    if (this.#state.phase === 'holding' && chunk.byteLength > 0) this.#hold(this.#state.chunks, chunk);
    if (last) this.#end(true);
    else if (this.#seenBytes > limits.bodyDiscardBytes) this.#end(false);
  }

  #hold(chunks: Uint8Array[], chunk: Uint8Array): void {
    const why =
      this.#heldBytes + chunk.byteLength > limits.bodyBytes
        ? 'too_large'
        : this.#room.heldBytes + chunk.byteLength > limits.bodiesHeldBytes
          ? 'no_room'
          : undefined;
    if (why !== undefined) {
      this.#letGo();
      this.#state = { phase: 'dropping', why };
      return;
    }
    chunks.push(chunk.slice());
    this.#heldBytes += chunk.byteLength;
    this.#room.heldBytes += chunk.byteLength;
  }

  #end(whole: boolean): void {
    const state = this.#state;
    if (state.phase === 'holding') {
      const [only] = state.chunks;
      const result = state.chunks.length === 1 && only !== undefined ? only : Buffer.concat(state.chunks);
      this.#state = { phase: 'ended', result, whole };
    } else if (state.phase === 'dropping') {
      this.#state = { phase: 'ended', result: state.why === 'unwanted' ? nothing : state.why, whole };
    }
    this.#letGo();
    this.#onEnded?.();
  }

  #letGo(): void {
    this.#room.heldBytes -= this.#heldBytes;
    this.#heldBytes = 0;
  }

  /** Nobody will ask for it: what is held is let go, and what follows is dropped. */
  discard(): void {
    if (this.#state.phase !== 'holding') return;
    this.#letGo();
    this.#state = { phase: 'dropping', why: 'unwanted' };
  }

  /** No more will come. */
  abort(): void {
    this.#letGo();
    this.#onEnded = undefined;
    if (this.#state.phase !== 'ended') this.#state = { phase: 'ended', result: nothing, whole: false };
  }

  /** Calls back once nothing more is read: at once, or later. One listener at a time. */
  whenEnded(listener: () => void): void {
    if (this.#state.phase === 'ended') listener();
    else this.#onEnded = listener;
  }

  /** Of an ended body. */
  result(): BodyResult {
    return this.#state.phase === 'ended' ? this.#state.result : nothing;
  }

  /** False: bytes of it may still be on the wire, so the connection can't be used again. */
  whole(): boolean {
    return this.#state.phase === 'ended' && this.#state.whole;
  }
}
