/**
 * `true` if one user takes no more than what all leave free. So one alone gets half of the room,
 * two get a third each, and there is always some for another.
 */
export const isWithinShare = (own: number, all: number, room: number): boolean => own <= room - all;

/** The amounts that each user of a shared room takes, in bytes or as a count. */
export class Shares {
  readonly #taken = new Map<string, number>();
  #all = 0;

  /** @param amount negative if so much is free again */
  add(name: string, amount: number): void {
    const taken = (this.#taken.get(name) ?? 0) + amount;
    if (taken > 0) this.#taken.set(name, taken);
    else this.#taken.delete(name);
    this.#all += amount;
  }

  has(name: string, room: number): boolean {
    return isWithinShare(this.#taken.get(name) ?? 0, this.#all, room);
  }
}
