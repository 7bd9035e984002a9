/** `run` and `update`: create and change a container from options. */
import { randomBytes } from 'node:crypto';
import { Option, type Command } from 'commander';
import type { Values } from '../../lib/values.ts';
import { limits } from '../../schemas/limits.ts';
import { networkModes } from '../../schemas/words.ts';
import { untilGone } from './rest.ts';
import { BadLine, variablesIn } from '../apply/compose/dot-env.ts';
import { dataOf, type Schemas, type Written } from '../client/api.ts';
import { ApiError } from '../client/errors.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { collect, waiting, type WaitOptions } from '../terminal/arguments.ts';
import { Refused, WrongUsage } from '../terminal/errors.ts';
import { readFile } from '../terminal/input.ts';
import { bytesText, cpuIn, memoryIn } from '../terminal/quantities.ts';
import { untilChanged } from './changed.ts';
import { containersOf, findContainer } from './find.ts';
import { changeDocument, createFrom, type Document, type DocumentBody } from './document.ts';
import { goalOf } from './done.ts';
import { imageIn, nameFor, type ImageName } from './image.ts';
import { runJob } from './job.ts';
import { namesPolicy, policyFileOf, policyWith, withPolicy, type PolicyOptions } from './policy.ts';
import { namesProcess, processWith, usualMemory, withProcess, withReset, type ProcessOptions } from './process.ts';
import type { StatusView } from '../client/wait.ts';
import { statusOf, watchDone } from './progress.ts';
import { storedPolicy, usesWith, type UseOptions } from './uses.ts';

/** Characters of the image's name in the name of a job, which ends with a random part. */
const jobNameChars = 50;

/** Names of variables as the API takes them. */
const isVariable = /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/;
const variableText = 'a name begins with a letter or "_" and has at most 128 letters, digits, "_", "." and "-"';
/** 6 MiB, which Docker needs. */
const memoryLeast = 6 * 2 ** 20;

interface Shape {
  readonly env?: readonly string[];
  readonly envFile?: string;
  readonly port?: readonly string[];
  readonly cpu?: string;
  readonly memory?: string;
  readonly network?: (typeof networkModes)[number];
}

interface RunOptions extends Shape, ProcessOptions, PolicyOptions, UseOptions, WaitOptions {
  readonly name?: string;
  readonly host?: string;
  readonly label?: readonly string[];
  readonly detach?: true;
  readonly job?: true;
  /** Another name of `--job`, as in docker and kubectl. */
  readonly rm?: true;
  readonly keep?: true;
}

/**
 * Splits `NAME=value`; a name alone takes the value of this shell.
 * @throws WrongUsage
 */
export function pairsIn(texts: readonly string[], env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      const name = at < 0 ? text : text.slice(0, at);
      if (!isVariable.test(name)) throw new WrongUsage(`--env ${name}: ${variableText}`);
      const value = at < 0 ? env[name] : text.slice(at + 1);
      if (value === undefined)
        throw new WrongUsage(`--env ${name}: give it a value (${name}=...), or set it in this shell`);
      return [name, value];
    }),
  );
}

/** Splits `key=value`; a key alone has an empty value. */
const labelsIn = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    texts.map((text) => {
      const [key = '', ...value] = text.split('=');
      return [key, value.join('=')];
    }),
  );

/**
 * The variables of a file, read as Compose reads it: quotes and `export` are taken off, and those
 * of this shell and of earlier lines are filled in.
 * @throws WrongUsage
 */
export function envFileIn(path: string, text: string, env: NodeJS.ProcessEnv): Record<string, string> {
  try {
    const found = variablesIn(text, (name) => env[name]);
    const wrong = Object.keys(found).find((name) => !isVariable.test(name));
    if (wrong !== undefined)
      throw new WrongUsage(`${path}: line ${lineWith(text, wrong)}: "${wrong}": ${variableText}`);
    return found;
  } catch (error) {
    if (!(error instanceof BadLine)) throw error;
    throw new WrongUsage(`${path}: ${error.message}`);
  }
}

/** The last line that sets the variable. */
const lineWith = (text: string, name: string): number =>
  text.split('\n').findLastIndex((line) => line.replace(/^\s*(?:export\s+)?/, '').startsWith(name)) + 1;

/** @throws WrongUsage if it names a port of the host, too, as in docker */
export function portIn(text: string): number | string {
  const [, inside] = /:(\d+(?:\/\w+)?)$/.exec(text) ?? [];
  if (inside !== undefined)
    throw new WrongUsage(`--port ${text}: give ${inside}; Longshore chooses the port of the host`);
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** @throws WrongUsage for a number without a unit that needs one */
export function limitIn(text: string): string {
  const size = memoryIn(text);
  if (/^\d+$/.test(size) && Number(size) < memoryLeast)
    throw new WrongUsage(`--memory ${text}: that is ${bytesText(Number(size))}; did you mean ${text}m?`);
  return size;
}

function shapeOf({ env = [], envFile, port = [], cpu, memory, network }: Shape, terminal: Terminal) {
  const ofFile = envFile === undefined ? {} : envFileIn(envFile, readFile(envFile).toString('utf8'), terminal.env);
  const all = { ...ofFile, ...pairsIn(env, terminal.env) };
  return {
    ...(Object.keys(all).length === 0 ? {} : { env: all }),
    ...(port.length === 0 ? {} : { ports: port.map(portIn) }),
    ...(cpu === undefined ? {} : { cpu_limit: cpuIn(cpu) }),
    ...(memory === undefined ? {} : { mem_limit: limitIn(memory) }),
    ...(network === undefined ? {} : { network: { mode: network } }),
  };
}

/** @throws WrongUsage where an option does not fit a job */
function jobOptions({ rm, ...options }: RunOptions): RunOptions {
  const job = options.job ?? rm;
  if (job === undefined) {
    if (options.keep === undefined) return options;
    throw new WrongUsage('--keep: give it with --job, which removes the container otherwise');
  }
  if (options.detach === true) throw new WrongUsage('--detach: leave out --job, which waits for the end of the job');
  if (options.restart === 'always') throw new WrongUsage('--restart always: a job ends; give never or on_failure');
  return { ...options, job, restart: options.restart ?? 'never' };
}

/** Jobs of one image have names that differ. */
const jobNameFor = (image: ImageName): string =>
  `${nameFor(image).slice(0, jobNameChars)}-${randomBytes(3).toString('hex')}`;

/** Creates the container. Waits for one of its name that is being removed. */
async function createWhenGone(
  context: Context,
  body: DocumentBody,
  { detach, timeout }: Pick<RunOptions, 'detach' | 'timeout'>,
): Promise<Written<Schemas['Container']>> {
  try {
    return await createFrom(context, body);
  } catch (error) {
    const isTaken = error instanceof ApiError && error.details['name'] !== undefined;
    const all = isTaken ? await containersOf(context).catch(() => []) : [];
    const going = all.find(({ name, status }) => name === body.name && status === 'removing');
    if (going === undefined) throw error;
    if (detach === true)
      throw new Refused(`${body.name} is being removed: "longshore wait ${going.id} removed", and run it then`);
    context.tell(`${body.name} is being removed: waiting until it is gone`);
    await untilGone(context, going, timeout);
    return createFrom(context, body);
  }
}

/** @param command words that follow `--` */
async function run(context: Context, image: string, command: readonly string[], given: RunOptions): Promise<void> {
  const { terminal, show } = context;
  const options = jobOptions(given);
  const named = imageIn(image);
  const shape = shapeOf(options, terminal);
  const memory = shape.mem_limit ?? usualMemory;
  const policy = policyWith(options, {}, await policyFileOf(options, terminal));
  const isJob = options.job === true;
  if (isJob && policy.health !== undefined && policy.health !== null && !('none' in policy.health))
    throw new WrongUsage('--job: leave out the health check, because what has one is waited for until it is healthy');
  const declared: DocumentBody = {
    name: options.name ?? (isJob ? jobNameFor(named) : nameFor(named)),
    image: named,
    ...shape,
    ...(namesProcess(options, command) ? { process: processWith(options, command, {}, memory) } : {}),
    ...(namesPolicy(options) ? { policy } : {}),
    ...(options.secret === undefined && options.secretFile === undefined ? {} : { secrets: usesWith(options, {}) }),
    ...(options.host === undefined ? {} : { host_key: options.host }),
    ...(options.label === undefined ? {} : { labels: labelsIn(options.label) }),
  };
  const { data: container, generation } = await createWhenGone(context, declared, options);
  const undo = [`rm ${container.name}`, 'removes it'] as const;
  if (isJob) {
    const goal = goalOf({ restart: 'never', health: null }, options.stable);
    await runJob(context, container, { goal, generation, seconds: options.timeout, isKept: options.keep === true });
  } else if (options.detach !== true) {
    const goal = goalOf(await storedPolicy(context, container.id), options.stable);
    const view = await watchDone(context, container, { goal, generation, seconds: options.timeout, undo });
    const addresses = view.addresses.map(({ port, address }) => `${port} at ${address}`).join(', ');
    show(
      { ...container, generation, status: view.status, addresses: view.addresses },
      `${container.id}${addresses === '' ? '' : `  ${addresses}`}`,
    );
  } else show({ ...container, generation }, container.id);
}

interface UpdateOptions extends Shape, ProcessOptions, PolicyOptions, UseOptions, WaitOptions {
  readonly image?: string;
  readonly pull?: true;
  readonly detach?: true;
}

/** The document with all that the options and the command change of it. */
function updated(
  document: Document,
  { env, ...shape }: ReturnType<typeof shapeOf>,
  command: readonly string[],
  options: UpdateOptions,
  policyFile: Values,
): DocumentBody {
  const { unset = [] } = options;
  const { host_key: _, desired: __, ...stays } = document;
  // `--unset` also removes a variable that a secret hides, or it would come back.
  const left = Object.entries({ ...document.env, ...env }).filter(([name]) => !unset.includes(name));
  return {
    ...stays,
    ...(options.image === undefined ? {} : { image: imageIn(options.image) }),
    ...shape,
    env: Object.fromEntries(left),
    process: processWith(options, command, document.process, shape.mem_limit ?? document.mem_limit),
    policy: policyWith(options, document.policy, policyFile),
    secrets: usesWith(options, document.secrets),
  };
}

/** Options of `update` that change something, beside those of the policy and the process. */
const changing = [
  ...(['image', 'pull', 'env', 'envFile', 'port', 'cpu', 'memory', 'network'] as const),
  ...(['secret', 'secretFile', 'unset'] as const),
] as const;

async function update(
  context: Context,
  name: string,
  command: readonly string[],
  options: UpdateOptions,
): Promise<void> {
  const { api, terminal, show } = context;
  const hasPolicy = namesPolicy(options);
  if (!hasPolicy && !namesProcess(options, command) && changing.every((option) => options[option] === undefined)) {
    const options =
      '--image, --pull, --env, --port, --cpu, --memory, --network, --secret, --unset, an option of its policy or process';
    throw new WrongUsage(`nothing to change: give ${options}, or its command after --`);
  }
  const shape = shapeOf(options, terminal);
  const policyFile = await policyFileOf(options, terminal);
  const container = await findContainer(context, name);
  const before = await statusOf(context, container.id);
  // An unchanged document makes no generation.
  const change = (document: Document): DocumentBody => updated(document, shape, command, options, policyFile);
  const query = options.pull === undefined ? {} : { pull: 'always' as const };
  const generation = await changeDocument(context, container.id, change, query);
  const after = await statusOf(context, container.id);
  if (generation === before.generation) context.tell(unchangedText(container.name, options));
  if (options.detach !== true && before.desired === 'running') {
    const view = await untilChanged(context, container, { before, after, generation, hasPolicy }, options);
    if (options.pull === true) context.tell(pulledText(container.name, before, view));
  } else if (options.pull === true && before.desired !== 'running')
    context.tell(`${container.name} does not run: its host looks at the tag when it starts`);
  const shown = await dataOf(api.GET('/api/v2/compute/{id}', { params: { path: { id: container.id } } }));
  show({ ...shown, generation }, container.id);
}

/** A tag may name another image by now; only a host that pulls finds out. */
const unchangedText = (name: string, { image }: UpdateOptions): string =>
  image === undefined
    ? `${name}: nothing changed`
    : `${name}: nothing changed: the same image; --pull brings in a tag that was pushed again`;

/** Result of looking at the tag again, as text. */
function pulledText(name: string, before: StatusView, { image, update }: StatusView): string {
  if (image === undefined) return `${name}: its host does not say which image its tag names`;
  const { digest } = image;
  if (update?.unmoved === true) return `${name}: its tag has not moved: it runs ${digest} as before`;
  return digest === before.image?.digest
    ? `${name}: its tag has not moved: it names ${digest}, as before`
    : `${name}: its tag names ${digest} now`;
}

const shaped = (command: Command): Command =>
  command
    .option('-e, --env <NAME=value>', 'Environment variable; without a value, taken from this shell', collect)
    .option('--env-file <file>', 'File of environment variables, read as Compose reads it')
    .option('-p, --port <port>', 'Container port to publish, such as 8080 or 53/udp', collect)
    .option('--cpu <cores>', 'CPU limit in cores, such as 0.5 or 2')
    .option('-m, --memory <size>', 'Memory limit, such as 256m')
    .addOption(new Option('--network <mode>', 'Network of the tenant, or none').choices([...networkModes]))
    .option('--secret <NAME=secret>', 'Environment variable with the value of a secret', collect)
    .option('--secret-file </path=secret>', 'File in the container with the value of a secret', collect);

const detachable = (command: Command, what: string): Command =>
  waiting(command.option('-d, --detach', `Return without waiting until ${what}`));

export function addRun(program: Command, terminal: Terminal): void {
  const command = program
    .command('run <image> [command...]')
    .description('Create a container, and wait until it is up or its job has ended; its command follows --');
  detachable(
    withPolicy(
      withProcess(shaped(command.option('-n, --name <name>', 'Container name (default: last part of the image)'))),
    ),
    'the container runs',
  )
    .option('--host <key>', 'Host to run on (default: any)')
    .option('-l, --label <key=value>', 'Label to tell containers apart by', collect)
    .option('--job', 'Run once: show the log, exit with the exit code of the program, and remove the container')
    .option('--keep', 'Leave the container of --job when it has ended')
    .addOption(new Option('--rm', 'Run once, as --job').hideHelp())
    .action(
      action<[string, string[], RunOptions]>(terminal, (context, image, words, options) => {
        // A job may take longer than a start does.
        const isLong = (options.job ?? options.rm) === true && command.getOptionValueSource('timeout') === 'default';
        return run(context, image, words, isLong ? { ...options, timeout: limits.cliWaitSecondsMax } : options);
      }),
    );
  const changing = program
    .command('update <container> [command...]')
    .description('Change a container in place, and wait until it is up again; its command follows --');
  detachable(
    withPolicy(withReset(withProcess(shaped(changing.option('-i, --image <image>', 'New image'))))),
    'the update is done',
  )
    .option('--pull', 'Run what the tag names now, if it was pushed again')
    .option('--unset <NAME>', 'Environment variable, or path of a secret file, to remove', collect)
    .action(
      action<[string, string[], UpdateOptions]>(terminal, async (context, name, command, options) => {
        const [first] = command;
        // An image without `--image` would become the command.
        if (first !== undefined && !program.args.includes('--'))
          throw new WrongUsage(`"${first}": a command follows --, and a new image --image`);
        await update(context, name, command, options);
      }),
    );
}
