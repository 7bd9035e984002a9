/**
 * The size of an image's configuration on the engine's disk. The engine reads all of it for each
 * inspection, and for each container of the image in each list, and its answers have only a part.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The size in bytes; `undefined` if the file is not visible: the engine is on another machine, or
 * keeps its images in containerd.
 * @param rootDir the engine's data folder
 */
export async function configBytes(rootDir: string | undefined, imageId: string): Promise<number | undefined> {
  const hex = /^sha256:([0-9a-f]{64})$/.exec(imageId)?.[1];
  if (rootDir === undefined || hex === undefined) return undefined;
  const folder = join(rootDir, 'image');
  for (const driver of await readdir(folder).catch(() => [])) {
    const path = join(folder, driver, 'imagedb', 'content', 'sha256', hex);
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined) return found.size;
  }
  return undefined;
}
