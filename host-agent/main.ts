/**
 * The host-agent: runs on every host, and brings its containers to what the control plane
 * desires. Its commands enrol a host and examine it.
 */
import { systemClock } from '../lib/time/clock.ts';
import { ConfigurationError, readSettings } from '../lib/config.ts';
import { runProgram } from '../lib/lifecycle.ts';
import { createLog, logLevelOf } from '../lib/log.ts';
import { complain, say } from '../lib/terminal.ts';
import { parseCommand, usage } from './commands/arguments.ts';
import { join } from './commands/join.ts';
import { reasonOf } from './commands/reason.ts';
import { runAgent } from './commands/run.ts';
import { doctor } from './doctor/doctor.ts';
import { checkSettings, settings } from './settings.ts';
import { minutes } from '../schemas/limits/units.ts';

/** Time that `host-agent join` waits for the gateway. */
const joinMs = 1 * minutes;

const command = parseCommand(process.argv.slice(2));

switch (command.kind) {
  case 'run': {
    const log = createLog('host-agent', logLevelOf(process.env));
    await runProgram(log, (life) => runAgent(process.env, systemClock, life, log));
    break;
  }
  case 'help':
    say(usage);
    break;
  case 'wrong':
    complain(`${command.message}\n\n${usage}`);
    process.exit(2);
    break;
  case 'join':
    try {
      const given = checkSettings(readSettings(settings, process.env));
      const log = createLog('host-agent', 'error');
      const parts = { stdin: process.stdin, clock: systemClock, patienceMs: joinMs, say, log };
      await join({ ...parts, settings: given, token: command.token, url: command.url });
    } catch (error) {
      const faults = error instanceof ConfigurationError ? error.faults : [reasonOf(error)];
      for (const fault of faults) complain(`✗ ${fault}`);
      process.exit(1);
    }
    process.exit(0);
    break;
  case 'doctor':
    process.exit(await doctor({ env: process.env, clock: systemClock, asJson: command.asJson, say }));
}
