/**
 * Runs an OCI registry on loopback and fills it with the images that the demo and the tests run.
 * They are built from BusyBox and pushed over the registry's HTTP API, so no image is ever fetched
 * from elsewhere.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  buildImage,
  imageArchitecture,
  mediaTypes,
  type Blob,
  type Image,
  type ImageConfig,
  type LayerEntry,
} from './image.ts';
import { onFreePort, startRestartable, startServer, type Restartable } from '../process/process.ts';
import { toolHere, type ServerTool } from '../fetch/tools.ts';

const requestDeadlineMs = 30_000;

export interface RegistryOptions {
  readonly tool?: ServerTool;
  /** Holds blobs and manifests; the next start finds them again. */
  readonly folder: string;
  readonly port?: number;
  /** The member `auth` of its configuration; if absent, everyone may pull and push. */
  readonly auth?: object;
}

export interface Registry extends Restartable {
  /** `127.0.0.1:port`, the beginning of an image reference. */
  readonly address: string;
  readonly port: number;
}

/** Configuration of Docker Distribution 2.7 and later. It is YAML, which JSON is a subset of. */
const registryConfiguration = ({ folder, auth }: RegistryOptions, port: number): string =>
  JSON.stringify({
    version: 0.1,
    log: { level: 'warn' },
    storage: { filesystem: { rootdirectory: join(folder, 'blobs') }, delete: { enabled: true } },
    ...(auth === undefined ? {} : { auth }),
    http: { addr: `127.0.0.1:${port}`, headers: { 'X-Content-Type-Options': ['nosniff'] } },
  });

export async function startRegistry(options: RegistryOptions): Promise<Registry> {
  const { folder } = options;
  const tool = options.tool ?? (await toolHere('docker-registry'));
  mkdirSync(folder, { recursive: true });
  const configFile = join(folder, 'config.yml');
  const start = async (port: number): Promise<Registry> => {
    writeFileSync(configFile, registryConfiguration(options, port));
    const restartable = await startRestartable((signal) =>
      startServer({
        name: 'docker-registry',
        command: tool.path,
        args: ['serve', configFile],
        // Version 3 traces to a collector by default, and fills the log with errors if there is
        // none.
        env: { ...tool.env, OTEL_TRACES_EXPORTER: 'none' },
        cwd: folder,
        logFile: join(folder, 'registry.log'),
        port,
        // 401: it asks for a login.
        ready: async (until) =>
          [200, 401].includes((await fetch(`http://127.0.0.1:${port}/v2/`, { signal: until })).status),
        readyDeadlineMs: 15_000,
        stopGraceMs: 5_000,
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    return { address: `127.0.0.1:${port}`, port, ...restartable };
  };
  return options.port === undefined ? onFreePort(start) : start(options.port);
}

async function call(url: URL | string, init: RequestInit, expected: number): Promise<Response> {
  const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(requestDeadlineMs) });
  if (answer.status !== expected) {
    throw new Error(`${init.method} ${url.toString()}: ${answer.status} ${(await answer.text()).slice(0, 500)}`);
  }
  return answer;
}

/**
 * Uploads a blob as the OCI distribution specification says: POST opens the upload, PUT with the
 * digest completes it.
 */
async function pushBlob(repositoryUrl: string, { bytes, digest }: Blob): Promise<void> {
  const known = await fetch(`${repositoryUrl}/blobs/${digest}`, {
    method: 'HEAD',
    signal: AbortSignal.timeout(requestDeadlineMs),
  });
  if (known.ok) return;
  const opened = await call(`${repositoryUrl}/blobs/uploads/`, { method: 'POST' }, 202);
  const upload = new URL(opened.headers.get('location') ?? '', repositoryUrl);
  upload.searchParams.set('digest', digest);
  const headers = { 'content-type': 'application/octet-stream' };
  await call(upload, { method: 'PUT', body: new Uint8Array(bytes), headers }, 201);
}

/** Pushes the image and resolves to the digest of its manifest. */
export async function pushImage(address: string, repository: string, tag: string, image: Image): Promise<string> {
  const { layer, config, manifest } = image;
  await pushBlobs(address, repository, tag, { blobs: [layer, config], manifest });
  return manifest.digest;
}

export async function pushBlobs(
  address: string,
  repository: string,
  tag: string,
  { blobs, manifest }: { readonly blobs: readonly Blob[]; readonly manifest: Blob },
): Promise<void> {
  const repositoryUrl = `http://${address}/v2/${repository}`;
  await Promise.all(blobs.map((blob) => pushBlob(repositoryUrl, blob)));
  await call(
    `${repositoryUrl}/manifests/${tag}`,
    {
      method: 'PUT',
      body: new Uint8Array(manifest.bytes),
      headers: { 'content-type': mediaTypes.manifest },
    },
    201,
  );
}

/** The applets that demo and test images call by name. */
const applets = [
  'sh',
  'sleep',
  'echo',
  'cat',
  'date',
  'hostname',
  'httpd',
  'nc',
  'id',
  'env',
  'printf',
  'seq',
  'yes',
  'true',
  'false',
  'kill',
  'ls',
  'dd',
  'head',
  'tail',
  'test',
  'touch',
  'rm',
  'mkdir',
  'ps',
  'ip',
] as const;

/** A root file system that holds only BusyBox and `extra`. */
export function busyboxLayer(busyboxPath: string, extra: readonly LayerEntry[] = []): LayerEntry[] {
  return [
    { kind: 'folder', path: 'bin' },
    { kind: 'file', path: 'bin/busybox', content: readFileSync(busyboxPath), mode: 0o755 },
    ...applets.map((name): LayerEntry => ({ kind: 'link', path: `bin/${name}`, target: 'busybox' })),
    { kind: 'folder', path: 'etc' },
    {
      kind: 'file',
      path: 'etc/passwd',
      content: 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n',
    },
    { kind: 'file', path: 'etc/group', content: 'root:x:0:\nnogroup:x:65534:\n' },
    { kind: 'folder', path: 'tmp', mode: 0o1777 },
    ...extra,
  ];
}

export interface TestImage extends ImageConfig {
  readonly repository: string;
  readonly tag: string;
  /** Files in addition to BusyBox. */
  readonly files?: readonly LayerEntry[];
}

/** Builds a small BusyBox image, pushes it, and resolves to its digest. */
export async function pushTestImage(address: string, image: TestImage): Promise<string> {
  const busybox = await toolHere('busybox');
  const built = buildImage(busyboxLayer(busybox.path, image.files), image, imageArchitecture(process.arch));
  return pushImage(address, image.repository, image.tag, built);
}

export const demoImage = { repository: 'longshore/demo', tag: '1' } as const;

const demoPage = (tag: string): string =>
  `<!doctype html><title>Longshore</title><h1>Ahoy from a Longshore container, version ${tag}</h1>\n`;

/** The trap makes `stop` prompt: as process 1 the shell has no default action for SIGTERM. */
const demoScript = `
trap 'echo "stopping"; exit 0' TERM INT
echo "Ahoy from Longshore: \${GREETING:-hello} (process $$ on $(hostname))"
httpd -p 8080 -h /www
n=0
while :; do
  n=$((n + 1))
  echo "line $n"
  sleep 1 &
  wait $!
done
`;

/**
 * Pushes a version of `longshore/demo`, which prints a greeting and then a line every second,
 * serves a page on port 8080, and stops promptly.
 */
export function pushDemoImage(address: string, tag: string = demoImage.tag): Promise<string> {
  return pushTestImage(address, {
    repository: demoImage.repository,
    tag,
    cmd: ['sh', '/demo.sh'],
    exposedPorts: [8080],
    files: [
      { kind: 'file', path: 'demo.sh', content: demoScript.trimStart() },
      { kind: 'folder', path: 'www' },
      { kind: 'file', path: 'www/index.html', content: demoPage(tag) },
    ],
  });
}
