/**
 * `node dist/test/mutants/run.js [parts of names...]`: fails if a mutant survives or does not
 * apply.
 */
import { killMutants } from './kill.ts';

const { killed, all } = await killMutants(process.argv.slice(2));
process.exitCode = killed === all && all > 0 ? 0 : 1;
