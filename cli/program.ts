/** The command line as a tree of commands (commander); docs/cli.md is written from it. */
import { Command, Option } from 'commander';
import { version } from '../lib/version.ts';
import type { Terminal } from './context.ts';
import { addApply } from './apply/command.ts';
import { addCompletion } from './completion/command.ts';
import { addDoctor } from './doctor/doctor.ts';
import { addClusters } from './operator/clusters.ts';
import { addHosts } from './operator/hosts.ts';
import { addNetworks } from './operator/networks.ts';
import { addSigningKeys } from './operator/signing-keys.ts';
import { addTenants } from './operator/tenants.ts';
import { addAccess } from './tenant/secrets.ts';
import { addAudit } from './history/audit.ts';
import { addContainers } from './tenant/containers.ts';
import { addPeers } from './tenant/peers/peers.ts';
import { addPolicy } from './tenant/policy.ts';
import { addProfiles } from './tenant/profiles.ts';
import { addRun } from './tenant/run.ts';
import { addSessions } from './tenant/sessions.ts';
import { addStreams } from './tenant/streams.ts';
import { addTrace } from './history/trace.ts';

/** They may stand before and after the name of a command. */
const globalOptions = (): readonly Option[] => [
  new Option('--profile <name>', 'a server that you have signed in to; default: the current one'),
  new Option('--server <url>', 'a server, in place of that of the profile (LONGSHORE_SERVER)'),
  new Option('--json', 'print values for programs, not text for people'),
];

export function programOf(terminal: Terminal): Command {
  const program = new Command('longshore')
    .description('Containers on your hosts, from the command line.')
    .version(version)
    // What follows the arguments of `exec` is the program's.
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .showHelpAfterError('Run it with --help for details.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
    });
  addProfiles(program, terminal);
  addRun(program, terminal);
  addApply(program, terminal);
  addContainers(program, terminal);
  addStreams(program, terminal);
  addTrace(program, terminal);
  addAudit(program, terminal);
  addSessions(program, terminal);
  addAccess(program, terminal);
  addPolicy(program, terminal);
  addPeers(program, terminal);
  addHosts(program, terminal);
  addTenants(program, terminal);
  addNetworks(program, terminal);
  addSigningKeys(program, terminal);
  addClusters(program, terminal);
  addDoctor(program, terminal);
  addCompletion(program, terminal);
  for (const command of withAllBelow(program)) {
    for (const option of globalOptions()) {
      if (!command.options.some(({ long }) => long === option.long))
        command.addOption(option.hideHelp(command !== program && option.long !== '--json'));
    }
  }
  return program;
}

/** A command and all below it, in their order. */
export const withAllBelow = (command: Command): Command[] => [command, ...command.commands.flatMap(withAllBelow)];
