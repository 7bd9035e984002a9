/** `trace`: the way of one request. What finds it is loaded when it is asked for. */
import type { Command } from 'commander';
import { action, type GlobalOptions, type Terminal } from '../context.ts';

export function addTrace(program: Command, terminal: Terminal): void {
  const fromEvents = action<[string]>(terminal, async (context, requestId) => {
    const { traceEvents } = await import('./way.ts');
    await traceEvents(context, requestId);
  });
  program
    .command('trace <request-id>')
    .description('the way of one request: its events, and the changes of status that followed')
    .option('--logs <file...>', 'from log lines of gateways, actors and agents in place of events; - is standard input')
    .action(async (requestId: string, { logs }: { readonly logs?: readonly string[] }, command: Command) => {
      if (logs === undefined) {
        await fromEvents(requestId, command);
        return;
      }
      const { traceLogs } = await import('./way.ts');
      await traceLogs(terminal, requestId, logs, command.optsWithGlobals<GlobalOptions>().json === true);
    });
}
