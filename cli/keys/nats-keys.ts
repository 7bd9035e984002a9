/** `longshore nats-keys` as a program of its own, for machines that have the servers. */
import { runCommand } from '../command.ts';
import { keysCommand } from './command.ts';

process.exit(await runCommand(keysCommand, process.argv.slice(2), process.env));
