/**
 * Loaded into actors processes (`--import`). On SIGUSR2 the process collects garbage and then
 * writes the size of its heap into a file, so that the figure does not include garbage.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const file = process.env['FLEET_MEMORY_FILE'];

if (file !== undefined) {
  process.on('SIGUSR2', () => {
    setFlagsFromString('--expose-gc');
    (runInNewContext('gc') as () => void)();
    writeFileSync(`${file}.new`, String(process.memoryUsage().heapUsed));
    renameSync(`${file}.new`, file);
  });
}
