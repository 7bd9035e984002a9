/** `apply`: what reads files, plans and carries out is loaded when it is asked for. */
import type { Command } from 'commander';
import { action, type Terminal } from '../context.ts';
import { collect, waiting } from '../terminal/arguments.ts';
import type { ApplyOptions } from './apply.ts';

type Given = ApplyOptions & { readonly schema?: true };

export function addApply(program: Command, terminal: Terminal): void {
  const command = program
    .command('apply')
    .description('make what a file declares: containers, secrets, registries, peers');
  const run = action<[Given]>(terminal, async (context, options) => {
    const { apply } = await import('./apply.ts');
    await apply(context, options);
  });
  waiting(command, 'how long to wait for each container')
    .option(
      '-f, --file <file>',
      'a file, or - for standard input; may be repeated; default: longshore.yml or compose.yaml here',
      collect,
    )
    .option('-p, --project-name <name>', 'name of the Compose project; default: the name in its file, or its folder')
    .option('--ignore <key>', 'leave out a key of a Compose file that is not supported; may be repeated', collect)
    .option('--dry-run', 'show what would change, and change nothing')
    .option('--prune', 'remove what is of this file and not in it any more')
    .option('-y, --yes', 'remove without a question')
    .option('-d, --detach', 'do not wait until containers run')
    .option('--schema', 'print the JSON Schema of the file, for editors')
    .action(async (options: Given, ...rest: unknown[]) => {
      if (options.schema === true) terminal.stdout.write(`${(await import('./file/schema.ts')).schemaText()}\n`);
      else await run(options, ...rest);
    });
}
