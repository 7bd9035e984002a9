/**
 * What should become of one container on this host: the desired set, admission, orphans and
 * isolation taken together. Pure.
 */
import type { DesiredContainer } from '../../schemas/wire/host.ts';

export type Wanted =
  | {
      readonly want: 'running' | 'stopped' | 'removed';
      readonly container: DesiredContainer;
      readonly spec: string;
      /** Its limits fit on this host beside the others'. */
      readonly admitted: boolean;
    }
  /** An orphan: ours by its labels, absent from a complete desired set. */
  | { readonly want: 'nothing' }
  /**
   * Leave it as it is: its record is damaged, the desired set is not complete, or an operator's
   * word is awaited.
   */
  | { readonly want: 'untouched' };
