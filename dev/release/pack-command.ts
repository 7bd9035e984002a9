/** `npm run pack:cli` writes the package of the command alone into the current folder. */
import { writeFileSync } from 'node:fs';
import { repositoryRoot } from '../paths.ts';
import { packCommand } from './command.ts';

if (process.argv.length > 2) {
  process.stderr.write('usage: npm run pack:cli\n');
  process.exit(1);
}
const { fileName, archive } = await packCommand(repositoryRoot);
writeFileSync(fileName, archive);
process.stdout.write(`${fileName}: ${archive.length} bytes\n`);
