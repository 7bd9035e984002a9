/**
 * A digest over a host's desired set in one partition. Owner and agent each make it from their own
 * copy. So an agent that has missed a change takes the whole set, and one whose set is current
 * takes none, even after a takeover. Pure.
 */
import type { ContainerId } from '../ids.ts';
import { hashesOf, hexWord } from '../text-hash.ts';
import type { DesiredContainer } from './host.ts';

/** Fields of a container that a digest covers; the others change only with the generation. */
export type Versioned = Pick<DesiredContainer, 'id' | 'generation' | 'placement' | 'desired' | 'prepare'> & {
  readonly update?: { readonly since: number };
};

/**
 * Rises when actors make another message of the same record, such as with a new field. It is part
 * of what both sides compare, so agents then take their sets again.
 */
const form = 1;

/**
 * Basis that two sets must share to be compared.
 * @param incarnation of the cluster: after a restore a generation comes again, with other content
 */
export const basisOf = (incarnation: number): string => `${form}.${incarnation}`;

export const basisIn = (digest: string): string => digest.split('.').slice(0, 2).join('.');

/** Counts the items and adds up their hashes, in any order. Releases must agree on the sums. */
export function digestOf(basis: string, containers: Iterable<Versioned>, hold: Iterable<ContainerId>): string {
  let [count, first, second] = [0, 0, 0];
  const add = (text: string): void => {
    const [one, two] = hashesOf(text);
    count++;
    first = (first + one) >>> 0;
    second = (second + two) >>> 0;
  };
  for (const { id, generation, placement, desired, prepare, update } of containers) {
    const updating = update === undefined ? '' : ` since ${update.since}`;
    add(`${id} ${generation} ${placement} ${prepare === true ? 'prepared' : desired}${updating}`);
  }
  for (const id of hold) add(`${id} hold`);
  return `${basis}.${count}.${hexWord(first)}.${hexWord(second)}`;
}
