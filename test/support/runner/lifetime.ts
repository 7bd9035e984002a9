/** Teardown of what a test has started: with the test, or with the process that runs it. */
import t, { type Test } from 'tap';

/** Ends things in the reverse order of their start. */
export type Lifetime = Pick<Test, 'teardown'>;

/** `undefined` if this process runs one file; then tap ends what that file has started. */
let ofWorker: (() => unknown)[] | undefined;

/** A worker, which runs many files, calls this first, and `endWorker` after its last file. */
export function beginWorker(): void {
  ofWorker = [];
}

export async function endWorker(): Promise<void> {
  for (let end = ofWorker?.pop(); end !== undefined; end = ofWorker?.pop()) await end();
}

/** Lifetime of what all files of this process share. */
export const processLifetime: Lifetime = {
  teardown: (end) => {
    if (ofWorker === undefined) t.teardown(end);
    else ofWorker.push(end);
  },
};
