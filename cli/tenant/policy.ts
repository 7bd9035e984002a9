/** `policy`, and the options of `run` and `update` that make a policy. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { merged, type Values } from '../../lib/values.ts';
import { limits } from '../../schemas/limits.ts';
import { restartPolicies, stopSignals } from '../../schemas/words.ts';
import { writtenOf, type Schemas } from '../client/api.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { carryOut, settable, settingsIn, settingsWith, type SetOptions } from '../settings/set.ts';
import { portNumber, waiting, wholeNumber, type WaitOptions } from '../terminal/arguments.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { showing } from '../terminal/list.ts';
import type { Input } from '../terminal/input.ts';
import { untilChanged } from './changed.ts';
import { findContainer } from './find.ts';
import { statusOf } from './progress.ts';
import { storedPolicy } from './uses.ts';

type PolicyPut = Schemas['PolicyPut'];

export interface PolicyOptions {
  readonly policy?: string;
  readonly restart?: (typeof restartPolicies)[number];
  readonly stopGrace?: number;
  readonly removeAfter?: number;
  readonly stopSignal?: (typeof stopSignals)[number];
  readonly healthHttp?: Values;
  readonly healthTcp?: number;
  readonly healthCommand?: string;
  readonly healthInterval?: number;
  readonly healthTimeout?: number;
  readonly healthRetries?: number;
  readonly healthStartPeriod?: number;
  readonly restartUnhealthy?: boolean;
  /** False with `--no-health`. */
  readonly health?: boolean;
}

/** Names in docker and Compose. */
const otherRestarts: Readonly<Record<string, (typeof restartPolicies)[number]>> = {
  no: 'never',
  'on-failure': 'on_failure',
  'unless-stopped': 'always',
};

export function restartIn(text: string): (typeof restartPolicies)[number] {
  const found = restartPolicies.find((one) => one === text) ?? otherRestarts[text];
  if (found === undefined) throw new InvalidArgumentError(`Allowed choices are ${restartPolicies.join(', ')}.`);
  return found;
}

/** @throws WrongUsage */
function httpIn(text: string): Values {
  const [, port, path = '/'] = /^(\d{1,5})(\/.*)?$/.exec(text) ?? [];
  if (port === undefined) throw new WrongUsage('--health-http must be PORT or PORT/PATH, such as 8080/healthz');
  return { port: portNumber(port), path };
}

const healthRange = (least: number, most: number = limits.healthSeconds) => wholeNumber(least, most);

export const withPolicy = (command: Command): Command =>
  command
    .option('--policy <file>', 'File with the policy, YAML or JSON; options override it')
    .addOption(
      new Option('--restart <when>', 'Restart policy of the container').choices(restartPolicies).argParser(restartIn),
    )
    .option(
      '--stop-grace <seconds>',
      'Grace period before a stop becomes a kill',
      wholeNumber(0, limits.policyStopGraceSeconds),
    )
    .option(
      '--remove-after <seconds>',
      'Time after its end when a job is removed',
      wholeNumber(0, limits.policyRemoveAfterSeconds),
    )
    .addOption(new Option('--stop-signal <signal>', 'Signal sent to stop the container').choices(stopSignals))
    .option('--health-http <port/path>', 'HTTP health check: port and path to GET, such as 8080/healthz', httpIn)
    .option('--health-tcp <port>', 'TCP health check: port to connect to', portNumber)
    .option('--health-command <command>', 'Command health check: run by sh in the container; exit code 0 is healthy')
    .option('--health-interval <seconds>', 'Interval between two health checks', healthRange(1))
    .option('--health-timeout <seconds>', 'Time-out of one health check', healthRange(1, limits.healthTimeoutSeconds))
    .option(
      '--health-retries <count>',
      'Consecutive failures before the container is unhealthy',
      healthRange(1, limits.healthRetries),
    )
    .option(
      '--health-start-period <seconds>',
      'Grace period after a start during which failures are ignored',
      healthRange(0),
    )
    .option('--restart-unhealthy', 'Start the container again when its health check fails')
    .option('--no-restart-unhealthy', 'Leave an unhealthy container running')
    .option('--no-health', 'Disable health checks, also that of the image');

/** Without the keys whose value is not given. */
const given = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/** The checks that the options name; at most one may be given. */
const checksIn = ({ healthHttp, healthTcp, healthCommand }: PolicyOptions): Values =>
  given({
    http: healthHttp,
    tcp: healthTcp === undefined ? undefined : { port: healthTcp },
    command: healthCommand === undefined ? undefined : ['sh', '-c', healthCommand],
  });

/** @throws WrongUsage */
function healthOf(options: PolicyOptions, before: Values | null): Values | undefined {
  const check = checksIn(options);
  const timing = given({
    interval: options.healthInterval,
    timeout: options.healthTimeout,
    retries: options.healthRetries,
    start_period: options.healthStartPeriod,
    restart_unhealthy: options.restartUnhealthy,
  });
  const isChecked = Object.keys(check).length > 0;
  if (Object.keys(check).length > 1)
    throw new WrongUsage('give one of --health-http, --health-tcp and --health-command');
  if (!isChecked && Object.keys(timing).length === 0) return undefined;
  if (!isChecked && (before === null || before['none'] === true))
    throw new WrongUsage('there is no check: give --health-http, --health-tcp or --health-command');
  const { http: _, tcp: __, command: ___, none: ____, ...kept } = before ?? {};
  return { ...(isChecked ? kept : before), ...check, ...timing };
}

/** Loaded where it is needed, because TypeBox comes with it. */
const policySchema = async () => (await import('../../schemas/api/policy.ts')).PolicyBody;

/** The settings of the file that the options name. @throws WrongUsage */
export const policyFileOf = async ({ policy }: PolicyOptions, input: Input): Promise<Values> =>
  policy === undefined ? {} : settingsIn(await policySchema(), policy, input);

const policyOptions = [
  'policy',
  'restart',
  'removeAfter',
  'stopGrace',
  'stopSignal',
  'healthHttp',
  'healthTcp',
  'health',
] as const;
const checkOptions = [
  'healthCommand',
  'healthInterval',
  'healthTimeout',
  'healthRetries',
  'healthStartPeriod',
  'restartUnhealthy',
] as const;

export const namesPolicy = (options: PolicyOptions): boolean =>
  // Commander sets `health` even if the option is not given.
  options.health === false ||
  [...policyOptions, ...checkOptions].some((one) => one !== 'health' && options[one] !== undefined);

/**
 * Applies options to a policy.
 * @param ofFile settings of their file
 * @throws WrongUsage
 */
export function policyWith(options: PolicyOptions, stored: Values, ofFile: Values): PolicyPut {
  const {
    restart,
    stopGrace: stop_grace_seconds,
    stopSignal: stop_signal,
    removeAfter: remove_after_seconds,
  } = options;
  const base = merged(stored, {
    ...ofFile,
    ...given({ restart, stop_grace_seconds, stop_signal, remove_after_seconds }),
  });
  const before = (base['health'] ?? null) as Values | null;
  const health = options.health === false ? { none: true } : healthOf(options, before);
  return health === undefined ? base : { ...base, health };
}

async function get(context: Context, name: string): Promise<void> {
  const policy = await storedPolicy(context, (await findContainer(context, name)).id);
  context.show(policy, JSON.stringify(policy, null, 2));
}

type PolicySet = SetOptions & WaitOptions & { readonly detach?: true };

async function set(context: Context, name: string, texts: readonly string[], options: PolicySet): Promise<void> {
  const container = await findContainer(context, name);
  const { id } = container;
  const stored = await storedPolicy(context, id);
  const body = await settingsWith(context, await policySchema(), stored, texts, options);
  await carryOut(context, name, [stored, body], options, async () => {
    const before = await statusOf(context, id);
    const written = await writtenOf(context.api.PUT('/api/v2/compute/{id}/policy', { params: { path: { id } }, body }));
    const after = await statusOf(context, id);
    const { data, generation } = written;
    // A check of the engine's is an update, and any check may fail; nothing else takes effect now.
    const isChecked = JSON.stringify(body['health']) !== JSON.stringify(stored.health);
    if (options.detach !== true && before.desired === 'running' && isChecked)
      await untilChanged(context, container, { before, after, generation, hasPolicy: true }, options);
    return data;
  });
}

export function addPolicy(program: Command, terminal: Terminal): void {
  const policy = program.command('policy').description('Manage how a container is restarted, stopped and checked');
  showing(policy.command('get <container>').description('Show the policy of a container')).action(
    action<[string]>(terminal, get),
  );
  waiting(
    settable(
      policy
        .command('set <container>')
        .description('Change the policy of a container; other settings stay. Another check is waited for'),
      'restart=on_failure health.http.port=8080',
    ).option('-d, --detach', 'Return without waiting until another check is done'),
  ).action(action<[string, string[], PolicySet]>(terminal, set));
}
