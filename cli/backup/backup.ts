/** `longshore backup` as a program of its own, for machines that have the servers. */
import { runCommand } from '../command.ts';
import { backupCommand } from './command.ts';

process.exit(await runCommand(backupCommand, process.argv.slice(2), process.env));
