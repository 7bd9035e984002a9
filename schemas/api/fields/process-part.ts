/**
 * The process of a container and its limits: the part `process` of its document. Absent settings
 * are those of its image, or of the platform. Pure.
 */
import Type from 'typebox';
import { limits } from '../../limits.ts';
import { memLimitPattern, sizeBytes } from '../../quantity.ts';
import { flag, map, object, text, words, type Texts } from './kinds.ts';

export interface Process {
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly user?: string;
  readonly working_dir?: string;
  /** Size of a file system in memory, by its path. */
  readonly tmpfs?: Texts;
  readonly shm_size?: string;
  readonly init?: boolean;
  readonly read_only?: boolean;
  /** `"1024:4096"`, soft and hard, or one number for both, by the name of the limit. */
  readonly ulimits?: Texts;
}

/**
 * Limits of a process (setrlimit(2)) by their names in Docker, with the largest value of each. The
 * platform keeps `core`: a dump would write memory to the host's disk.
 */
export const ulimitsMax: Readonly<Record<string, number>> = {
  data: limits.ulimitBytesMax,
  fsize: limits.ulimitBytesMax,
  memlock: limits.ulimitBytesMax,
  nofile: limits.ulimitCountMax,
  nproc: limits.ulimitCountMax,
  stack: limits.ulimitBytesMax,
};

/** `"1024:4096"` or `"1024"`; undefined where the text is neither. */
export function ulimitOf(value: string): { readonly soft: number; readonly hard: number } | undefined {
  const [, soft, hard = soft] = /^(\d{1,16})(?::(\d{1,16}))?$/.exec(value) ?? [];
  return soft === undefined || Number(soft) > Number(hard) ? undefined : { soft: Number(soft), hard: Number(hard) };
}

function ulimitFault(value: string, name: string): string | undefined {
  const most = ulimitsMax[name];
  const given = ulimitOf(value);
  if (most === undefined) return undefined;
  if (given === undefined) return 'must be "soft:hard", like "1024:4096", or one number for both';
  return given.hard > most ? `must be at most ${most}` : undefined;
}

const pathPattern = `^/[^\\u0000]{0,${limits.processPathChars - 1}}$`;
const pathForm = `must be an absolute path of at most ${limits.processPathChars} characters`;
const sizeForm = 'must be a whole number of bytes, or one with k, m or g, like "64m"';
const sizeFault = (size: string): string | undefined => (sizeBytes(size) === undefined ? sizeForm : undefined);
const size = (description: string) =>
  text({
    given: Type.String({ pattern: memLimitPattern, description }),
    pattern: memLimitPattern,
    form: sizeForm,
    maxChars: limits.processSizeChars,
    last: sizeFault,
  });

function tmpfsFault(given: string, path: string): string | undefined {
  const parts = path.split('/').slice(1);
  if (parts.some((part) => part === '' || part === '.' || part === '..') || path.includes(':') || path.includes(','))
    return 'must be the absolute path of a folder, without "..", ":" and ","';
  if (['proc', 'sys', 'dev'].includes(parts[0]!)) return 'must not be below /proc, /sys or /dev';
  return sizeFault(given);
}

const userPattern = '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$';
/** The engine refuses a larger number of a user or a group. */
const largestId = 2 ** 31 - 1;
const userFault = (user: string): string | undefined =>
  user.split(':').some((one) => /^\d+$/.test(one) && Number(one) > largestId)
    ? `numbers must be at most ${largestId}`
    : undefined;

const command = (description: string) =>
  words({ maxItems: limits.processWords, maxBytes: limits.processBytes, description });

export const processKind = object<Process>({
  entrypoint: {
    kind: command('The program. Absent: that of the image. With it, an absent `command` is none.'),
    fallback: null,
  },
  command: { kind: command('Arguments of the entrypoint, or a program. Absent: that of the image.'), fallback: null },
  user: {
    kind: text({
      given: Type.String({ pattern: userPattern, description: 'A name or a number, and a group after ":".' }),
      pattern: userPattern,
      form: 'must be the name or the number of a user, and may have a group after ":", like "1000:1000"',
      last: userFault,
    }),
    fallback: null,
  },
  working_dir: {
    kind: text({
      given: Type.String({ pattern: pathPattern, description: 'Folder in which the program begins.' }),
      pattern: pathPattern,
      form: pathForm,
    }),
    fallback: null,
  },
  tmpfs: {
    kind: map({
      key: pathPattern,
      form: pathForm,
      maxKeys: limits.processTmpfs,
      maxValueBytes: limits.processSizeChars,
      description: 'Size of a file system in memory, like "64m", by its path. It counts as memory of the container.',
      last: tmpfsFault,
    }),
    fallback: {},
  },
  shm_size: { kind: size('Size of /dev/shm, like "64m". It counts as memory of the container.'), fallback: null },
  init: {
    kind: flag('If true, a small init is process 1: it passes signals on, and reaps processes.'),
    fallback: false,
  },
  read_only: { kind: flag('If true, nothing can write to the file system of the image.'), fallback: false },
  ulimits: {
    kind: map({
      key: `^(?:${Object.keys(ulimitsMax).join('|')})$`,
      form: `can't be set: ${Object.keys(ulimitsMax).join(', ')} can`,
      maxKeys: Object.keys(ulimitsMax).length,
      maxValueBytes: 33,
      description: 'Limits of each process, "soft:hard" or one number for both, by their names.',
      last: ulimitFault,
    }),
    fallback: {},
  },
});
