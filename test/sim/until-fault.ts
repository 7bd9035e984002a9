/**
 * `node dist/test/sim/until-fault.js 200 31` runs seeds 1 to 200 until one fails, prints it, and
 * exits with 1. It begins with seed 31 (default: 1), and ends with the seeds before it.
 */
import { simulate } from './simulation.ts';

const last = Number(process.argv[2] ?? 100);
const first = Number(process.argv[3] ?? 1);
for (let done = 0; done < last; done++) {
  const seed = ((first - 1 + done) % last) + 1;
  const { faults } = await simulate(seed);
  const [fault] = faults;
  if (fault === undefined) continue;
  process.stdout.write(`seed ${seed}: ${fault}\n`);
  process.exit(1);
}
