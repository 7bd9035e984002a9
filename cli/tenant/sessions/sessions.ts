/** `exec`, `cp` and `forward`. Modules of sessions are loaded when one is opened. */
import { InvalidArgumentError, type Command } from 'commander';
import { action, type Terminal } from '../../context.ts';
import { WrongUsage } from '../../terminal/errors.ts';
import type { ExecOptions } from './exec.ts';
import type { Ports } from './forward.ts';

const portsIn = (text: string): Ports => {
  const [, local, remote] = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(text) ?? [];
  const ports = { local: Number(local ?? remote), remote: Number(remote) };
  if (remote === undefined || ports.local > 65_535 || ports.remote > 65_535 || ports.remote < 1) {
    throw new InvalidArgumentError('It must be LOCAL:REMOTE or PORT, such as 8080:80.');
  }
  return ports;
};

const addressIn = (text: string): string => {
  if (text.trim() !== '') return text;
  // Node would listen on every address.
  throw new InvalidArgumentError('It must be an address of this machine, such as 127.0.0.1.');
};

export function addSessions(program: Command, terminal: Terminal): void {
  program
    .command('exec <container> <command...>')
    .description('Run a program in a container, and exit with its exit code')
    .option('-i, --interactive', 'Pass standard input to the program')
    .option('-t, --tty', 'Allocate a terminal (TTY) for the program')
    .option('-u, --user <user>', 'User that runs the program (default: the user of the container)')
    .option('-w, --workdir <path>', 'Working directory of the program')
    .passThroughOptions()
    .action(
      action<[string, string[], ExecOptions]>(terminal, async (context, name, [first, ...rest], options) => {
        const { exec } = await import('./exec.ts');
        // As in kubectl, two dashes before the program do not belong to it.
        const command = first === '--' ? rest : [first ?? '', ...rest];
        if (command.length === 0) throw new WrongUsage('exec: give a command after the two dashes');
        if (first?.startsWith('-') === true && first !== '--')
          throw new WrongUsage(`"${first}": options stand before the container: longshore exec ${first} ${name} ...`);
        await exec(context, name, command, options);
      }),
    );
  program
    .command('cp')
    .description('Copy a file into a container, or out of it')
    .argument('<from>', 'File, or CONTAINER:PATH; - for standard input')
    .argument('<to>', 'CONTAINER:PATH, or file; - for standard output')
    .action(
      action<[string, string]>(terminal, async (...given) => {
        const { cp } = await import('./cp.ts');
        await cp(...given);
      }),
    );
  program
    .command('forward <container>')
    .description('Forward local ports to ports of a container')
    .argument(
      '<local:remote...>',
      'Local and container ports, such as 8080:80; one number stands for both',
      (text: string, before: readonly Ports[] = []) => [...before, portsIn(text)],
    )
    .option('--address <address>', 'Local address to listen on', addressIn, '127.0.0.1')
    .action(
      action<[string, Ports[], { address: string }]>(terminal, async (...given) => {
        const { forward } = await import('./forward.ts');
        await forward(...given);
      }),
    );
}
