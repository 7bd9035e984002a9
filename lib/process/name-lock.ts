/**
 * A lock between the processes of a machine, or of one network namespace. On Linux it is an
 * abstract socket: the kernel frees it with the process, so a kill leaves nothing stale. Other
 * systems have no such socket, and there everyone gets the lock.
 */
import { createServer } from 'node:net';

export interface NameLock {
  release(): Promise<void>;
}

export const hasNameLocks = process.platform === 'linux';

/** The path of a lock's socket. A connection shows that the lock is held, and takes none. */
export const nameLockPath = (name: string): string => `\0longshore-${name}`;

/** Takes the lock until it is released or this process ends; undefined if another holds it. */
export async function takeNameLock(name: string): Promise<NameLock | undefined> {
  if (!hasNameLocks) return { release: () => Promise.resolve() };
  const server = createServer((socket) => void socket.destroy());
  const isOurs = await new Promise<boolean>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error),
    );
    server.listen(nameLockPath(name), () => resolve(true));
  });
  if (!isOurs) return undefined;
  server.unref();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}
