/**
 * `node dist/test/mutants/run.js [parts of names...]`: fails if a mutant survives or does not
 * apply.
 */
import { killMutants } from './kill.ts';
import { mutants } from './mutants.ts';

const parts = process.argv.slice(2);
const isChosen = (name: string): boolean => parts.length === 0 || parts.some((part) => name.includes(part));
const { killed, all } = await killMutants(mutants.filter(({ name }) => isChosen(name)));
process.exitCode = killed === all && all > 0 ? 0 : 1;
