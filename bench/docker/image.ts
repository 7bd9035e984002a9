/** The image that is run: a shell that sleeps, and writes nothing. */
import { randomBytes } from 'node:crypto';
import { pushTestImage } from '../../dev/servers/registry.ts';
import type { Stack } from '../../dev/stack/stack.ts';
import type { BenchImage } from './peer.ts';

/** Process 1 ignores SIGTERM by default; the trap makes it exit at once. */
const command = ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 3600 & wait $!; done'];

/** @param bytes of ballast, which do not compress */
export async function pushImage(stack: Stack, repository: string, bytes: number): Promise<BenchImage> {
  const { registry } = stack.image;
  const files = [{ kind: 'file', path: 'ballast', content: randomBytes(bytes) }] as const;
  const digest = await pushTestImage(registry, { repository, tag: '1', cmd: command, files });
  return { registry, repository, tag: '1', digest };
}
