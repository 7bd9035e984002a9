/**
 * Config files as a tar archive; the engine unpacks it at the root of a container and makes missing
 * folders.
 */
import { pack } from 'tar-stream';
import type { ConfigFile } from '../../schemas/api/container.ts';

const defaultMode = 0o444;

export async function tarOf(files: readonly ConfigFile[]): Promise<Buffer> {
  const tar = pack();
  for (const { path, content, mode } of files) tar.entry({ name: path.slice(1), mode: mode ?? defaultMode }, content);
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
