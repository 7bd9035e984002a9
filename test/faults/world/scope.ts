/** Ends what a run started, in reverse order. */
import type { Scope } from '../../support/machine.ts';

export interface RunScope extends Scope {
  /** Ends everything even if one part fails, then throws the first failure. */
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
