/** `apply`. Its modules are loaded only when the command runs. */
import type { Command } from 'commander';
import { action, type Terminal } from '../context.ts';
import { collect, waiting } from '../terminal/arguments.ts';
import type { ApplyOptions } from './apply.ts';

type Given = ApplyOptions & { readonly schema?: true };

export function addApply(program: Command, terminal: Terminal): void {
  const command = program
    .command('apply')
    .description('Create or update resources from a file: containers, secrets, registries, peers');
  const run = action<[Given]>(terminal, async (context, options) => {
    const { apply } = await import('./apply.ts');
    await apply(context, options);
  });
  waiting(command, 'Longest wait for each container')
    .option(
      '-f, --file <file>',
      'File to apply, or - for standard input; may be repeated (default: longshore.yml or compose.yaml here)',
      collect,
    )
    .option(
      '-p, --project-name <name>',
      'Name of the Compose project (default: the name in its file, or of its folder)',
    )
    .option('--ignore <key>', 'Unsupported key of a Compose file to leave out; may be repeated', collect)
    .option('--dry-run', 'Show the changes without making them')
    .option('--prune', 'Delete resources that an earlier apply created and the file no longer has')
    .option('-y, --yes', 'Delete without confirmation')
    .option('-d, --detach', 'Return without waiting until containers run')
    .option('--schema', 'Print the JSON Schema of the file, for editors')
    .action(async (options: Given, ...rest: unknown[]) => {
      if (options.schema === true) terminal.stdout.write(`${(await import('./file/schema.ts')).schemaText()}\n`);
      else await run(options, ...rest);
    });
}
