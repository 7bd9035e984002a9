/** Images of several layers in a real registry, and a slow way to it. */
import type { Test } from 'tap';
import { createServer, request as forward, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import {
  digestOf,
  imageArchitecture,
  mediaTypes,
  tarArchive,
  type Blob,
  type LayerEntry,
} from '../../../dev/servers/image.ts';
import { busyboxLayer, pushBlobs } from '../../../dev/servers/registry.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';

export interface LayeredImage {
  readonly repository: string;
  readonly tag: string;
  readonly layers: readonly Blob[];
}

/** A layer of one file whose bytes do not compress; no other image has it. */
const randomLayer = (bytes: number): Buffer =>
  tarArchive([{ kind: 'file', path: `file-${randomBytes(8).toString('hex')}`, content: randomBytes(bytes) }]);

/** Pushes an image of BusyBox and of layers of these sizes, which runs `cmd`. */
export async function pushLayers(
  address: string,
  { repository, tag, sizes, cmd }: { repository: string; tag: string; sizes: readonly number[]; cmd: string[] },
): Promise<LayeredImage> {
  const busybox = await toolHere('busybox');
  const mark: LayerEntry = { kind: 'file', path: 'mark', content: randomBytes(16) };
  const archives = [tarArchive(busyboxLayer(busybox.path, [mark])), ...sizes.map(randomLayer)];
  const blobOf = (bytes: Buffer): Blob => ({ bytes, digest: digestOf(bytes) });
  const layers = archives.map((archive) => blobOf(gzipSync(archive, { level: 1 })));
  const config = blobOf(
    Buffer.from(
      JSON.stringify({
        architecture: imageArchitecture(process.arch),
        os: 'linux',
        config: { Cmd: cmd, Env: ['PATH=/bin'] },
        rootfs: { type: 'layers', diff_ids: archives.map(digestOf) },
      }),
    ),
  );
  const described = ({ bytes, digest }: Blob, mediaType: string) => ({ mediaType, size: bytes.length, digest });
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config: described(config, mediaTypes.config),
      layers: layers.map((layer) => described(layer, mediaTypes.layer)),
    }),
  );
  await pushBlobs(address, repository, tag, { blobs: [...layers, config], manifest: blobOf(manifest) });
  return { repository, tag, layers };
}

/** Pace of a layer: as fast as it can be, a few bytes at a time, or a part and then nothing. */
export type Pace = 'fast' | { readonly bytes: number; readonly everyMs: number } | { readonly stopAfter: number };

export interface SlowRegistry {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** Digests of the layers that were asked for, once for each request. */
  readonly asked: string[];
  /** Layers that are under way. */
  open(): number;
  /** From the next request on. */
  setPace(pace: (digest: string) => Pace): void;
}

/** A proxy before a registry, which sends layers at the pace that the test sets. */
export async function slowRegistry(t: Test, registry: string, pace: (digest: string) => Pace): Promise<SlowRegistry> {
  const asked: string[] = [];
  let paceOf = pace;
  let open = 0;
  const timers = new Set<NodeJS.Timeout>();

  const send = (body: Buffer, how: Pace, response: ServerResponse): void => {
    if (how === 'fast') {
      response.end(body);
      return;
    }
    if ('stopAfter' in how) {
      response.write(body.subarray(0, how.stopAfter));
      return;
    }
    let from = 0;
    const timer = setInterval(() => {
      response.write(body.subarray(from, from + how.bytes));
      from += how.bytes;
      if (from < body.length) return;
      stop();
      response.end();
    }, how.everyMs);
    const stop = (): void => {
      clearInterval(timer);
      timers.delete(timer);
    };
    timers.add(timer);
    response.once('close', stop);
  };

  const server = createServer((incoming, response) => {
    const [host = '', port] = registry.split(':');
    const { url: path = '/', method = 'GET' } = incoming;
    const headers = { ...incoming.headers, host: registry };
    const outgoing = forward({ host, port, path, method, headers }, (answer) => {
      const digest = /\/blobs\/(sha256:[0-9a-f]+)$/.exec(path)?.[1];
      const isLayer = digest !== undefined && method === 'GET';
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (!isLayer) {
        answer.pipe(response);
        return;
      }
      asked.push(digest);
      open += 1;
      response.once('close', () => (open -= 1));
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () => send(Buffer.concat(chunks), paceOf(digest), response));
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(
    () =>
      new Promise((resolve) => {
        for (const timer of timers) clearInterval(timer);
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    open: () => open,
    setPace: (next) => {
      paceOf = next;
    },
  };
}
