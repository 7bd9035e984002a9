/**
 * Settings of dockerd that its API does not show: from its command line and its configuration, as
 * far as this machine shows them.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { processesOf } from '../processes.ts';

export interface DaemonSettings {
  readonly concurrentDownloads: number;
  readonly userlandProxy: boolean;
  /**
   * The source of the settings; `undefined` if no dockerd was found, and these are its defaults.
   */
  readonly source: string | undefined;
}

const DaemonFile = Type.Object({
  'max-concurrent-downloads': Type.Optional(Type.Integer()),
  'userland-proxy': Type.Optional(Type.Boolean()),
});
const decodeFile = decoder(DaemonFile);

const usualFile = '/etc/docker/daemon.json';
/** The defaults of dockerd. */
const defaults = { concurrentDownloads: 3, userlandProxy: true };

export const unseenDaemon: DaemonSettings = { ...defaults, source: undefined };

/** The value of `--name value` or `--name=value`; of a flag without a value, `true`. */
export function optionOf(words: readonly string[], name: string): string | undefined {
  for (const [at, word] of words.entries()) {
    if (word.startsWith(`--${name}=`)) return word.slice(name.length + 3);
    const next = words[at + 1];
    if (word === `--${name}`) return next === undefined || next.startsWith('-') ? 'true' : next;
  }
  return undefined;
}

/** Pure. @param file the content of the configuration file that the words name */
export function settingsOf(words: readonly string[], file: Static<typeof DaemonFile>, source: string): DaemonSettings {
  const downloads = Number(optionOf(words, 'max-concurrent-downloads'));
  const proxy = optionOf(words, 'userland-proxy');
  return {
    concurrentDownloads:
      (downloads > 0 ? downloads : undefined) ?? file['max-concurrent-downloads'] ?? defaults.concurrentDownloads,
    userlandProxy: proxy === undefined ? (file['userland-proxy'] ?? defaults.userlandProxy) : proxy !== 'false',
    source,
  };
}

/** The command lines of all processes of this name. */
export async function commandsOf(
  name: string,
  proc: string,
): Promise<{ readonly pid: string; readonly words: readonly string[] }[]> {
  const found = await Promise.all(
    (await processesOf(name, proc)).map(async (pid) => {
      // It ended meanwhile.
      const line = await readFile(join(proc, pid, 'cmdline'), 'utf8').catch(() => '');
      return { pid, words: line.split('\0').filter((word) => word) };
    }),
  );
  return found.filter(({ words }) => words.length > 0);
}

/** @param rootDir the engine's data folder, which tells one dockerd of a machine from another */
export async function daemonSettings(
  rootDir: string | undefined,
  { proc = '/proc', file = usualFile } = {},
): Promise<DaemonSettings> {
  const daemons = (await commandsOf('dockerd', proc)).map(({ words }) => words);
  const own = daemons.find((words) => optionOf(words, 'data-root') === rootDir) ?? daemons.find(isUsual);
  if (own === undefined) return unseenDaemon;
  const path = optionOf(own, 'config-file') ?? file;
  try {
    return settingsOf(own, decodeFile(await readFile(path)), path);
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return settingsOf(own, {}, isMissing ? `there is no ${path}` : `${path} cannot be read`);
  }
}

const isUsual = (words: readonly string[]): boolean => optionOf(words, 'data-root') === undefined;
