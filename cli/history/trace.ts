/** `trace`: the events and log lines of a request. Its searches are loaded when they are needed. */
import type { Command } from 'commander';
import { action, type GlobalOptions, type Terminal } from '../context.ts';

export function addTrace(program: Command, terminal: Terminal): void {
  const fromEvents = action<[string]>(terminal, async (context, requestId) => {
    const { traceEvents } = await import('./way.ts');
    await traceEvents(context, requestId);
  });
  program
    .command('trace <request-id>')
    .description('Show the events and log lines of a request')
    .option(
      '--logs <file...>',
      'Files with log lines of gateways, actors and agents, to read in place of events; - is standard input',
    )
    .action(async (requestId: string, { logs }: { readonly logs?: readonly string[] }, command: Command) => {
      if (logs === undefined) {
        await fromEvents(requestId, command);
        return;
      }
      const { traceLogs } = await import('./way.ts');
      await traceLogs(terminal, requestId, logs, command.optsWithGlobals<GlobalOptions>().json === true);
    });
}
