/**
 * The guard process (see ledger.ts). Argument 1 is the ledger of a process that has just ended; the
 * guard ends and removes what that ledger still lists.
 */
import { readFileSync, rmSync } from 'node:fs';
import { readLedger, removeFolderIfEmpty } from './ledger.ts';
import { reap } from './reap.ts';

const [, , file] = process.argv;
if (file !== undefined) {
  await reap(readLedger(readFileSync(file, 'utf8')).left);
  rmSync(file, { force: true });
  removeFolderIfEmpty();
}
