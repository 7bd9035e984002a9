/** `longshore restore` as a program of its own, for machines that have the servers. */
import { runCommand } from '../command.ts';
import { restoreCommand } from './command.ts';

process.exit(await runCommand(restoreCommand, process.argv.slice(2), process.env));
