/**
 * A digest over a host's desired set in one partition. Owner and agent each make it from their own
 * copy. So an agent that has missed a change takes the whole set, and one whose set is current
 * takes none, even after a takeover. Pure.
 */
import type { ContainerId } from '../ids.ts';
import type { DesiredContainer } from './host.ts';

/** What a digest covers of a container: the rest changes only with the generation. */
export type Versioned = Pick<DesiredContainer, 'id' | 'generation' | 'placement' | 'desired' | 'prepare'>;

/**
 * Rises when actors make another message of the same record, such as with a new field. It is part
 * of what both sides compare, so agents then take their sets again.
 */
const form = 1;

/**
 * What two sets must share to be compared.
 * @param incarnation of the cluster: after a restore a generation comes again, with other content
 */
export const basisOf = (incarnation: number): string => `${form}.${incarnation}`;

export const basisIn = (digest: string): string => digest.split('.').slice(0, 2).join('.');

/** Two hashes of a text. The rounds are those of cyrb53: each bit changes both words. */
function hashesOf(text: string): readonly [number, number] {
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

/** Counts the items and adds up their hashes, in any order. Releases must agree on the sums. */
export function digestOf(basis: string, containers: Iterable<Versioned>, hold: Iterable<ContainerId>): string {
  let [count, first, second] = [0, 0, 0];
  const add = (text: string): void => {
    const [one, two] = hashesOf(text);
    count++;
    first = (first + one) >>> 0;
    second = (second + two) >>> 0;
  };
  for (const { id, generation, placement, desired, prepare } of containers) {
    add(`${id} ${generation} ${placement} ${prepare === true ? 'prepared' : desired}`);
  }
  for (const id of hold) add(`${id} hold`);
  return `${basis}.${count}.${hex(first)}.${hex(second)}`;
}

/** Always as long: what is sent for a seed of the simulation depends on the seed alone. */
const hex = (word: number): string => word.toString(16).padStart(8, '0');
