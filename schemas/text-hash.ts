/** A short hash of a text, to compare versions by. It is no defence against forgery. Pure. */

/** Two hashes of a text. The rounds are those of cyrb53: each bit changes both words. */
export function hashesOf(text: string): readonly [number, number] {
  let one = 0xdead_beef;
  let two = 0x41c6_ce57;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    one = Math.imul(one ^ code, 2_654_435_761);
    two = Math.imul(two ^ code, 1_597_334_677);
  }
  one = Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(two ^ (two >>> 13), 3_266_489_909);
  two = Math.imul(two ^ (two >>> 16), 2_246_822_507) ^ Math.imul(one ^ (one >>> 13), 3_266_489_909);
  return [one >>> 0, two >>> 0];
}

/** Always eight digits: what is sent for a seed of the simulation depends on the seed alone. */
export const hexWord = (word: number): string => word.toString(16).padStart(8, '0');

/**
 * Counts texts and adds up their hashes, in any order, so that a set that changes keeps its digest.
 * Releases must agree on the sums.
 */
export class TextSum {
  #count = 0;
  #first = 0;
  #second = 0;

  add(text: string): void {
    this.#count++;
    this.#move(text, 1);
  }

  /** @param text that was added before */
  remove(text: string): void {
    this.#count--;
    this.#move(text, -1);
  }

  /** @param basis that two digests must share to be compared */
  digest(basis: string): string {
    return `${basis}.${this.#count}.${hexWord(this.#first)}.${hexWord(this.#second)}`;
  }

  #move(text: string, sign: 1 | -1): void {
    const [one, two] = hashesOf(text);
    this.#first = (this.#first + sign * one) >>> 0;
    this.#second = (this.#second + sign * two) >>> 0;
  }
}

/** @param basis that two digests must share to be compared */
export function digestOfTexts(basis: string, texts: Iterable<string>): string {
  const sum = new TextSum();
  for (const text of texts) sum.add(text);
  return sum.digest(basis);
}
