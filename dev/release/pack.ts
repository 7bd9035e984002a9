/**
 * `node dist/dev/release/pack.js COMMIT FILE` writes an archive of a release's programs, for the
 * upgrade test (test/upgrade/releases/).
 */
import { writeFileSync } from 'node:fs';
import { repositoryRoot } from '../paths.ts';
import { packPrograms } from './programs.ts';

const [commit, file, ...others] = process.argv.slice(2);
if (commit === undefined || file === undefined || others.length > 0) {
  process.stderr.write('usage: node dist/dev/release/pack.js COMMIT FILE\n');
  process.exit(1);
}
const archive = await packPrograms(repositoryRoot, commit);
writeFileSync(file, archive);
process.stdout.write(`${file}: ${archive.length} bytes\n`);
