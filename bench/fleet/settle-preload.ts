/**
 * Loaded into the actors (`--import`): on SIGUSR2 the process collects its garbage and writes the
 * size of its heap into a file, so that what is told is what it holds and not what it has yet to
 * throw away.
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
