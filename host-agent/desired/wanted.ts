/**
 * The goal for one container on this host: desired set, admission, orphans and isolation combined.
 * Pure.
 */
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { referenceOf } from '../spec/reference.ts';

export type Wanted =
  | {
      /** `prepared`: made and not started, because the container still runs elsewhere (ADR 32). */
      readonly want: 'running' | 'prepared' | 'stopped' | 'removed';
      readonly container: DesiredContainer;
      readonly spec: string;
      /** `true` if its limits fit on this host beside those of the others. */
      readonly admitted: boolean;
      readonly update?: Updating['update'];
    }
  /** An orphan to remove: its owner gave it away, or an operator approved. */
  | { readonly want: 'nothing' }
  /**
   * Leave it as it is: its record is damaged, the desired set is not complete, or an operator has
   * not approved.
   */
  | { readonly want: 'ignored' };

export type Declared = Extract<Wanted, { container: unknown }>;

/** One version of a container, and the hash that marks its copy on the engine. */
export interface DeclaredVersion {
  readonly container: DesiredContainer;
  readonly spec: string;
}

/** The declared version replaces another one, which should run until then. */
export interface Updating {
  readonly update: { readonly since: number; readonly previous: DeclaredVersion };
}

/** `true` if this host makes the container, started or not, and so needs its image. */
export const isMade = (wanted: Wanted): wanted is Declared & { readonly want: 'running' | 'prepared' } =>
  wanted.want === 'running' || wanted.want === 'prepared';

/** The versions that a container may have here. */
export function versionsOf(wanted: Wanted): DesiredContainer[] {
  if (!('container' in wanted) || wanted.want === 'removed') return [];
  return [wanted.container, ...(wanted.update === undefined ? [] : [wanted.update.previous.container])];
}

/** The images that a container needs here, except those with an invalid reference. */
export function imagesOf(wanted: Wanted): string[] {
  return versionsOf(wanted).flatMap((container) => {
    const reference = referenceOf(container);
    return reference.kind === 'image' ? [reference.reference] : [];
  });
}
