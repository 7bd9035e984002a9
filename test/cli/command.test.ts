/** What all commands of an operator share. */
import { parseArgs } from 'node:util';
import t from 'tap';
import { folderArgument, runCommand, type Command } from '../../cli/command.ts';

const command: Command<string> = {
  help: 'usage: it FOLDER\n\nDoes it. With --without-logs, less; with --replace, more.',
  read: (args) =>
    folderArgument(parseArgs({ args: [...args], options: {}, allowPositionals: true, strict: true }).positionals),
  run: async (folder) => {
    if (folder === 'broken') throw new Error('it is broken');
  },
  failed: 'not done',
};

/** The exit code, and what was printed. */
async function outcome(...args: string[]): Promise<[number, string]> {
  const lines: string[] = [];
  const { write } = process.stdout;
  process.stdout.write = (text) => lines.push(String(text)) > 0;
  try {
    return [await runCommand(command, args, {}), lines.join('')];
  } finally {
    process.stdout.write = write;
  }
}

t.test('exit codes and texts', async (t) => {
  t.same(await outcome('folder'), [0, '']);
  t.same(await outcome('--help', 'folder'), [0, `${command.help}\n`]);
  t.same(await outcome(), [2, 'FOLDER is missing.\nusage: it FOLDER\nRun with --help for details.\n']);
  t.same(await outcome('one', 'two'), [
    2,
    'Only one FOLDER is allowed; remove two.\nusage: it FOLDER\nRun with --help for details.\n',
  ]);
  t.same(await outcome('broken'), [1, '✗ not done: it is broken\n']);
  t.match(await outcome('--without-log'), [
    2,
    /^Unknown option '--without-log'.*\n\(Did you mean --without-logs\?\)\n/,
  ]);
  t.notMatch((await outcome('--replac'))[1], /Did you mean/, 'nothing that deletes is suggested');
  t.throws(() => folderArgument([]), { message: 'FOLDER is missing.' });
});
