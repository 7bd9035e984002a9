/** `version`: the releases of the command line and of the server. */
import type { Command } from 'commander';
import { version } from '../../lib/version.ts';
import { createApi } from '../client/api.ts';
import { accessOf, displayOf, type GlobalOptions, type Terminal } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { showing } from '../terminal/list.ts';

/** Shows the release of the command line alone without a profile. */
async function show(terminal: Terminal, command: Command): Promise<void> {
  const display = await displayOf(command, terminal);
  const found = await serverVersion(terminal, command.optsWithGlobals<GlobalOptions>()).catch((error: unknown) => {
    if (!(error instanceof Refused)) throw error;
    return { server: null, version: null };
  });
  const lines = [
    `longshore ${version}`,
    ...(found.server === null ? [] : [`server    ${found.version ?? 'does not say'}, ${found.server}`]),
  ];
  display.show({ client: version, server: found.version, url: found.server }, lines.join('\n'));
}

/** @throws Refused if no server is known */
async function serverVersion(terminal: Terminal, options: GlobalOptions) {
  const { server } = accessOf(options, terminal.env);
  const { response } = await createApi({ server, signal: terminal.signal }).GET('/api/v2/openapi.json');
  return { server, version: response.headers.get('longshore-version') };
}

export function addVersion(program: Command, terminal: Terminal): void {
  showing(program.command('version').description('Show the versions of longshore and of the server')).action(
    async (_options: unknown, command: Command) => {
      await show(terminal, command);
    },
  );
}
