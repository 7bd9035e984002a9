/**
 * Loaded into a program before its own code (`--import`): writes, now and then, how many bytes of
 * its heap and of its buffers are in use, all garbage collected. The memory of the process says
 * less: V8 collects late, and gives pages back later still.
 */
import { writeFileSync } from 'node:fs';
import { collectNow } from '../support/garbage.ts';
import { seconds } from '../../schemas/limits/units.ts';

const file = process.env['FAULTS_HEAP_FILE'];
const everyMs = 5 * seconds;

if (file !== undefined) {
  setInterval(() => {
    collectNow();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(file, `${process.pid} ${heapUsed + external}`);
  }, everyMs).unref();
}
