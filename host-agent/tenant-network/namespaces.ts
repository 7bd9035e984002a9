/**
 * Network namespaces: the router's, which this program makes, and those of sandboxes, which the
 * engine names by files of one folder. A process id is no handle: it may be another process by now.
 * A namespace is opened once, examined, and used by its descriptor.
 */
import { closeSync, fstatSync, openSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ToolError, runTool } from './tools.ts';

/** The folder in which `ip netns` keeps the files of namespaces that have a name. */
const namedFolder = '/run/netns';

export class NamespaceError extends Error {
  override readonly name = 'NamespaceError';
}

const hostNamespace = (): { readonly dev: number; readonly ino: number } => statSync('/proc/self/ns/net');
const isSame = (one: { dev: number; ino: number }, other: { dev: number; ino: number }): boolean =>
  one.dev === other.dev && one.ino === other.ino;

export const routerFile = (router: string): string => join(namedFolder, router);

/** Makes the router namespace, unless it is there. */
export async function ensureRouter(router: string): Promise<'made' | 'kept'> {
  if (isRouter(router)) return 'kept';
  // A file without a namespace, as after a restart of the machine.
  await runTool(['ip', 'netns', 'delete', router]).catch((error: unknown) => {
    if (!(error instanceof ToolError)) throw error;
  });
  await runTool(['ip', 'netns', 'add', router]);
  return 'made';
}

function isRouter(router: string): boolean {
  try {
    const file = statSync(routerFile(router));
    return file.dev === hostNamespace().dev && !isSame(file, hostNamespace());
  } catch {
    return false;
  }
}

export interface OpenNamespace {
  readonly descriptor: number;
  close(): void;
}

/**
 * Opens the namespace of a sandbox.
 * @param folder the folder of the engine's namespaces; a file elsewhere is refused, also through a
 * link
 * @throws NamespaceError
 */
export function openSandbox(file: string, folder: string, router: string): OpenNamespace {
  const real = orRefuse(() => realpathSync(file), `there is no namespace ${file}`);
  if (dirname(real) !== realpathSync(folder)) throw new NamespaceError(`${file} is not in ${folder}`);
  const host = hostNamespace();
  const others = [host, statSync(routerFile(router))];
  const descriptor = orRefuse(() => openSync(real, 'r'), `${file} can't be opened`);
  const close = (): void => closeSync(descriptor);
  const opened = fstatSync(descriptor);
  if (opened.dev !== host.dev || others.some((other) => isSame(other, opened))) {
    close();
    throw new NamespaceError(`${file} is no namespace of a sandbox`);
  }
  return { descriptor, close };
}

function orRefuse<T>(read: () => T, why: string): T {
  try {
    return read();
  } catch {
    throw new NamespaceError(why);
  }
}

/** The command, in the router namespace. */
export const inRouter = (router: string, command: readonly string[]): readonly string[] => [
  'nsenter',
  `--net=${routerFile(router)}`,
  ...command,
];

/** The command, in the namespace that it gets as its descriptor 3. */
export const inSandbox = (command: readonly string[]): readonly string[] => [
  'nsenter',
  '--net=/proc/self/fd/3',
  ...command,
];
