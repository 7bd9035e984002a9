/** The guard's work (see ledger.ts): argument 1 is the ledger of a process that has just ended. */
import { readFileSync, rmSync } from 'node:fs';
import { readLedger, removeFolderIfEmpty } from './ledger.ts';
import { reap } from './reap.ts';

const [, , file] = process.argv;
if (file !== undefined) {
  await reap(readLedger(readFileSync(file, 'utf8')).left);
  rmSync(file, { force: true });
  removeFolderIfEmpty();
}
