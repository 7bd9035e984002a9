/**
 * `node dist/test/sim/until-fault.js 200` runs seeds 1 to 200 until one fails, prints it, and exits
 * with 1.
 */
import { simulate } from './simulation.ts';

const last = Number(process.argv[2] ?? 100);
for (let seed = 1; seed <= last; seed++) {
  const { faults } = await simulate(seed);
  const [fault] = faults;
  if (fault === undefined) continue;
  process.stdout.write(`seed ${seed}: ${fault}\n`);
  process.exit(1);
}
