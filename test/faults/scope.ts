/** What a run has started, ended in reverse. */
import type { Scope } from '../support/machine.ts';

export interface RunScope extends Scope {
  /** Ends all, also when one fails to; the first failure is thrown. */
  end(): Promise<void>;
}

export function createScope(): RunScope {
  const ends: (() => unknown)[] = [];
  return {
    teardown: (end) => void ends.push(end),
    end: async () => {
      const failures: unknown[] = [];
      for (const end of ends.splice(0).reverse()) {
        try {
          await end();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
