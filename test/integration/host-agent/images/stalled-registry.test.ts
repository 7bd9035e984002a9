/** A real engine pulls from a registry that stops sending, and from one that is slow. */
import t, { type Test } from 'tap';
import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { randomBytes } from 'node:crypto';
import { createEngine } from '../../../../host-agent/docker/engine.ts';
import { EngineError } from '../../../../host-agent/docker/errors.ts';
import { createTransport, parseEngineAddress, type EngineAddress } from '../../../../host-agent/docker/transport.ts';
import { pullFailure } from '../../../../host-agent/reconcile/execute/failures.ts';
import { sharedEngine } from '../../../support/servers.ts';

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** A tar of one file, whose bytes do not compress. */
function layerOf(bytes: number): Buffer {
  const header = Buffer.alloc(512);
  header.write('file');
  header.write('0000644\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  header.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124);
  header.write('00000000000\0', 136);
  header.write('        0', 148);
  header.write('ustar', 257);
  header.write('00', 263);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, randomBytes(bytes), Buffer.alloc(1024)]);
}

/** A registry (OCI distribution) of one image; `send` sends its layer. */
async function startRegistry(t: Test, send: (layer: Buffer, response: ServerResponse) => void): Promise<string> {
  const tar = layerOf(32 * 1024);
  const layer = gzipSync(tar, { level: 0 });
  const config = Buffer.from(
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: {},
      rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    }),
  );
  const type = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: type,
      config: {
        mediaType: 'application/vnd.docker.container.image.v1+json',
        size: config.length,
        digest: digestOf(config),
      },
      layers: [
        {
          mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
          size: layer.length,
          digest: digestOf(layer),
        },
      ],
    }),
  );
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    if (path.includes('/manifests/')) {
      const head = { 'content-type': type, 'docker-content-digest': digestOf(manifest) };
      response.writeHead(200, { ...head, 'content-length': manifest.length });
      response.end(request.method === 'HEAD' ? undefined : manifest);
    } else if (path.endsWith(digestOf(config))) response.end(config);
    else if (path.endsWith(digestOf(layer))) {
      response.writeHead(200, { 'content-length': layer.length });
      send(layer, response);
    } else response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const idleMs = 5000;

t.test('a pull ends when its bytes stop, not when they are slow', async (t) => {
  const address = parseEngineAddress(await sharedEngine(t)) as EngineAddress;
  const engine = createEngine(
    createTransport(address, () => undefined),
    idleMs,
  );
  t.teardown(() => engine.close());
  const { signal } = new AbortController();

  await t.test('stopped in the middle of a layer', async (t) => {
    const registry = await startRegistry(t, (layer, response) => {
      response.write(layer.subarray(0, layer.length / 2));
    });
    const error = await engine.pull(`${registry}/longshore/stalled:1`, signal).catch((cause: unknown) => cause);
    t.match(error, { fault: { kind: 'stalled' }, detail: 'the registry sent nothing for 5 s' });
    t.ok(error instanceof EngineError);
    t.match(pullFailure(error), { kind: 'retry', why: { reason: 'image_pull' } }, 'another attempt follows');
  });

  await t.test('before the manifest', async (t) => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(
      () =>
        new Promise((resolve) => {
          server.close(resolve);
          server.closeAllConnections();
        }),
    );
    const registry = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const error = await engine.pull(`${registry}/longshore/silent:1`, signal).catch((cause: unknown) => cause);
    t.match(error, { fault: { kind: 'stalled' } });
  });

  await t.test('slow, for longer than the allowed silence', async (t) => {
    const registry = await startRegistry(t, (layer, response) => {
      const piece = Math.ceil(layer.length / 16);
      let from = 0;
      const timer = setInterval(() => {
        response.write(layer.subarray(from, from + piece));
        from += piece;
        if (from < layer.length) return;
        clearInterval(timer);
        response.end();
      }, 500);
    });
    const reference = `${registry}/longshore/slow:1`;
    await engine.pull(reference, signal);
    t.ok(await engine.imageId(reference));
  });
});
