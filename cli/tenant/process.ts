/** Options of `run` and `update` for the process of a container, named as in Docker. Pure. */
import { InvalidArgumentError, Option, type Command } from 'commander';
import { collect } from '../terminal/arguments.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { memoryIn } from '../terminal/quantities.ts';
import type { Document } from './document.ts';

export type Process = Document['process'];

/** Settings of a process, by the option that names them. */
const settings = {
  command: 'command',
  entrypoint: 'entrypoint',
  user: 'user',
  workdir: 'working_dir',
  tmpfs: 'tmpfs',
  'shm-size': 'shm_size',
  init: 'init',
  'read-only': 'read_only',
  ulimit: 'ulimits',
} as const satisfies Readonly<Record<string, keyof Process>>;
type Setting = keyof typeof settings;

export interface ProcessOptions {
  readonly entrypoint?: string;
  readonly user?: string;
  readonly workdir?: string;
  readonly tmpfs?: readonly string[];
  readonly shmSize?: string;
  readonly init?: true;
  readonly readOnly?: true;
  readonly ulimit?: readonly string[];
  /** Settings to return to those of the image, or of the platform. */
  readonly reset?: readonly Setting[];
}

/** Default memory limit: that of `containerDefaults`, whose packages are not loaded here. */
export const usualMemory = '256m';

export interface Tmpfs {
  readonly path: string;
  /** In the form of the API; `undefined` if the text names none. */
  readonly size: string | undefined;
  /** Options that Longshore does not have. */
  readonly unknown: readonly string[];
}

/** Options that each file system in memory has anyway. */
const tmpfsUsual = ['rw', 'noexec', 'nosuid', 'nodev', 'mode=1777', 'mode=01777', ''];

/** `/tmp`, or `/tmp:size=64m,mode=1777` as `docker run --tmpfs` takes it. */
export function tmpfsIn(text: string): Tmpfs {
  const at = text.indexOf(':');
  const path = at < 0 ? text : text.slice(0, at);
  const options = at < 0 ? [] : text.slice(at + 1).split(',');
  const sizes = options.flatMap((option) => (option.startsWith('size=') ? [option.slice('size='.length)] : []));
  const size = sizes.at(-1);
  return {
    path,
    size: size === undefined ? undefined : memoryIn(size),
    unknown: options.filter((option) => !option.startsWith('size=') && !tmpfsUsual.includes(option)),
  };
}

/** @param memory limit of the container, the default size of its file systems in memory */
function tmpfsOf(texts: readonly string[], memory: string): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const { path, size = memory, unknown } = tmpfsIn(text);
      const [first] = unknown;
      if (first !== undefined)
        throw new WrongUsage(`--tmpfs ${text}: "${first}" can't be set: give a path and size, such as /tmp:size=64m`);
      return [path, size];
    }),
  );
}

function ulimitsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^(\w+)=(.+)$/.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw new WrongUsage(`--ulimit ${text}: it must be NAME=SOFT[:HARD], such as nofile=1024:4096`);
      return [name, value];
    }),
  );
}

/** True if options or a command change the process. */
export const namesProcess = (options: ProcessOptions, command: readonly string[]): boolean =>
  command.length > 0 ||
  [options.entrypoint, options.user, options.workdir, options.tmpfs, options.shmSize].some(
    (one) => one !== undefined,
  ) ||
  [options.init, options.readOnly, options.ulimit, options.reset].some((one) => one !== undefined);

/**
 * Applies options and a command to the process of a container.
 * @param command words that follow `--`
 * @param before the process as it is declared now
 * @param memory limit of the container
 * @throws WrongUsage
 */
export function processWith(
  options: ProcessOptions,
  command: readonly string[],
  before: Process,
  memory: string,
): Process {
  const { entrypoint, user, workdir, tmpfs, shmSize, init, readOnly, ulimit, reset = [] } = options;
  const removed = new Set<string>(reset.map((name) => settings[name]));
  const kept = Object.fromEntries(Object.entries(before).filter(([name]) => !removed.has(name))) as Process;
  return {
    ...kept,
    // As in Docker, an empty text removes that of the image.
    ...(entrypoint === undefined ? {} : { entrypoint: entrypoint === '' ? [] : [entrypoint] }),
    ...(command.length === 0 ? {} : { command: [...command] }),
    ...(user === undefined ? {} : { user }),
    ...(workdir === undefined ? {} : { working_dir: workdir }),
    ...(tmpfs === undefined ? {} : { tmpfs: { ...kept.tmpfs, ...tmpfsOf(tmpfs, memory) } }),
    ...(shmSize === undefined ? {} : { shm_size: memoryIn(shmSize) }),
    ...(init === undefined ? {} : { init }),
    ...(readOnly === undefined ? {} : { read_only: readOnly }),
    ...(ulimit === undefined ? {} : { ulimits: { ...kept.ulimits, ...ulimitsOf(ulimit) } }),
  };
}

export const withProcess = (command: Command): Command =>
  command
    .option('--entrypoint <program>', 'Program to run in place of that of the image; empty for none')
    .option('-u, --user <user[:group]>', 'User that runs the program, by name or number')
    .option('-w, --workdir <path>', 'Working directory of the program')
    .option('--tmpfs <path[:size=size]>', 'File system in memory, such as /tmp:size=64m', collect)
    .option('--shm-size <size>', 'Size of /dev/shm, such as 128m')
    .option('--init', 'Run a small init as process 1, which passes signals on and reaps processes')
    .option('--read-only', 'Refuse writes to the file system of the image')
    .option('--ulimit <name=soft[:hard]>', 'Limit of each process, such as nofile=1024:4096', collect);

function settingsIn(name: string, before: readonly Setting[] = []): readonly Setting[] {
  if (!Object.hasOwn(settings, name)) throw new InvalidArgumentError(`Use ${Object.keys(settings).join(', ')}.`);
  return [...before, name as Setting];
}

export const withReset = (command: Command): Command =>
  command.addOption(
    new Option('--reset <setting>', 'Setting to take from the image again; may be repeated')
      .choices(Object.keys(settings))
      .argParser(settingsIn),
  );
