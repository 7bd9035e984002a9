/** Images for tests that need a program of their own in a container. */
import { createHash } from 'node:crypto';
import { pushTestImage } from '../../../dev/servers/registry.ts';
import type { Rig } from './rig.ts';

/** An image whose container runs a shell script. */
export async function imageRunning({ image }: Rig, script: string) {
  const repository = 'longshore/script';
  // Named by its content: an engine may keep the image of an earlier version of the test.
  const tag = createHash('sha256').update(script).digest('hex').slice(0, 12);
  await pushTestImage(image.registry, { repository, tag, cmd: ['sh', '-c', script] });
  return { registry: image.registry, repository, tag };
}
