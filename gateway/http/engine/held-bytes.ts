/**
 * The bytes of one body that have arrived, in one buffer that counts against the memory for bodies.
 */
import type { Seat, Seats, Unseated } from '../../../lib/seats.ts';

const nothing = new Uint8Array(0);

export class HeldBytes {
  readonly #room: Seats;
  #client = '';
  #tenant: string | undefined;
  /** The first `#length` bytes are the body's. */
  #buffer = nothing;
  #length = 0;
  /** The buffer's share of the memory. */
  #seat: Seat | undefined;

  constructor(room: Seats) {
    this.#room = room;
  }

  get length(): number {
    return this.#length;
  }

  takesRoom(): boolean {
    return this.#seat !== undefined;
  }

  /** Counts the bytes against this client's share of the memory. */
  belongTo(client: string): void {
    this.#client = client;
  }

  /** Counts the bytes against the tenant's share, too. */
  claim(tenant: string): Unseated | undefined {
    this.#tenant = tenant;
    return this.#seat?.claim(tenant);
  }

  /**
   * Copies a piece. The buffer doubles as it fills, up to the most that may still come; a length
   * that is only declared takes no memory.
   */
  append(piece: Uint8Array, isLast: boolean, mostBytes: number): Unseated | undefined {
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
    this.#seat?.leave();
    this.#seat = undefined;
    this.#buffer = nothing;
    this.#length = 0;
  }

  #takeRoom(bytes: number): Unseated | undefined {
    if (this.#seat !== undefined) return this.#seat.grow(bytes);
    const seat = this.#room.take(this.#client, bytes);
    if (typeof seat === 'string') return seat;
    this.#seat = seat;
    return this.#tenant === undefined ? undefined : seat.claim(this.#tenant);
  }
}
