/**
 * A digest over a host's desired set in one partition. Owner and agent each make it from their own
 * copy. So an agent that has missed a change takes the whole set, and one whose set is current
 * takes none, even after a takeover. Pure.
 */
import type { ContainerId } from '../ids.ts';
import { digestOfTexts } from '../text-hash.ts';
import type { DesiredContainer } from './host.ts';

/** Fields of a container that a digest covers; the others change only with the generation. */
export type Versioned = Pick<DesiredContainer, 'id' | 'generation' | 'placement' | 'desired' | 'prepare'> & {
  readonly update?: { readonly since: number };
};

/**
 * Rises when actors make another message of the same record, such as with a new field. It is part
 * of what both sides compare, so agents then take their sets again.
 */
const form = 2;

/**
 * Basis that two sets must share to be compared.
 * @param incarnation of the cluster: after a restore a generation comes again, with other content
 */
export const basisOf = (incarnation: number): string => `${form}.${incarnation}`;

export const basisIn = (digest: string): string => digest.split('.').slice(0, 2).join('.');

export const digestOf = (basis: string, containers: Iterable<Versioned>, hold: Iterable<ContainerId>): string =>
  digestOfTexts(basis, textsOf(containers, hold));

function* textsOf(containers: Iterable<Versioned>, hold: Iterable<ContainerId>): Generator<string, void, void> {
  for (const { id, generation, placement, desired, prepare, update } of containers) {
    const updating = update === undefined ? '' : ` since ${update.since}`;
    yield `${id} ${generation} ${placement} ${prepare === true ? 'prepared' : desired}${updating}`;
  }
  for (const id of hold) yield `${id} hold`;
}
