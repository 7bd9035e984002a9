/**
 * Builds single-layer container images from a list of files: a tar archive, an image configuration
 * and a manifest (Docker image manifest version 2, schema 2). The same input gives the same bytes,
 * and so the same digest.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';

export type LayerEntry =
  | { readonly kind: 'file'; readonly path: string; readonly content: Uint8Array | string; readonly mode?: number }
  | { readonly kind: 'folder'; readonly path: string; readonly mode?: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

const blockBytes = 512;

/** A number in a ustar header: octal, zero-padded, terminated by NUL. */
const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, '0')}\0`;

function tarHeader(entry: LayerEntry, sizeBytes: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  const path = entry.kind === 'folder' ? `${entry.path}/` : entry.path;
  if (Buffer.byteLength(path) > 100) throw new Error(`${path}: paths in this archive format hold at most 100 bytes`);
  const mode = entry.kind === 'link' ? 0o777 : (entry.mode ?? (entry.kind === 'folder' ? 0o755 : 0o644));
  header.write(path, 0);
  header.write(octal(mode, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(sizeBytes, 12), 124);
  header.write(octal(0, 12), 136);
  header.write(' '.repeat(8), 148);
  header.write({ file: '0', link: '2', folder: '5' }[entry.kind], 156);
  if (entry.kind === 'link') header.write(entry.target, 157);
  header.write('ustar\0' + '00', 257);
  const checksum = header.reduce((sum, byte) => sum + byte, 0);
  header.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/** Makes a ustar archive (POSIX.1-1988) whose entries are owned by root and dated 1970. */
export function tarArchive(entries: readonly LayerEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = entry.kind === 'file' ? Buffer.from(entry.content) : Buffer.alloc(0);
    const padding = Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes);
    return [tarHeader(entry, content.length), content, padding];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

export interface Healthcheck {
  readonly command: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly retries: number;
}

export interface ImageConfig {
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly exposedPorts?: readonly number[];
  readonly volumes?: readonly string[];
  readonly user?: string;
  readonly workingDir?: string;
  readonly stopSignal?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly healthcheck?: Healthcheck;
  /** Members of the image's `config` as they are, such as `Shell`. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Members beside `config`, such as `history`. */
  readonly beside?: Readonly<Record<string, unknown>>;
}

export interface Blob {
  readonly digest: string;
  readonly bytes: Buffer;
}

export interface Image {
  readonly manifest: Blob;
  readonly config: Blob;
  readonly layer: Blob;
}

export const mediaTypes = {
  manifest: 'application/vnd.docker.distribution.manifest.v2+json',
  config: 'application/vnd.docker.container.image.v1+json',
  layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
} as const;

export const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

const blob = (bytes: Buffer): Blob => ({ bytes, digest: digestOf(bytes) });
const jsonBlob = (value: unknown): Blob => blob(Buffer.from(JSON.stringify(value)));

/** Translates Node's name of an architecture into the name that images use. */
export const imageArchitecture = (arch: string): string => ({ x64: 'amd64', ia32: '386' })[arch] ?? arch;

const nanoseconds = (ms: number): number => ms * 1_000_000;

export function buildImage(entries: readonly LayerEntry[], config: ImageConfig, architecture: string): Image {
  const archive = tarArchive(entries);
  const layer = blob(gzipSync(archive));
  const { healthcheck } = config;
  const configBlob = jsonBlob({
    architecture,
    os: 'linux',
    created: '1970-01-01T00:00:00Z',
    config: {
      ...(config.entrypoint === undefined ? {} : { Entrypoint: config.entrypoint }),
      ...(config.cmd === undefined ? {} : { Cmd: config.cmd }),
      Env: Object.entries({ PATH: '/bin', ...config.env }).map(([name, value]) => `${name}=${value}`),
      ExposedPorts: Object.fromEntries((config.exposedPorts ?? []).map((port) => [`${port}/tcp`, {}])),
      ...(config.volumes === undefined
        ? {}
        : { Volumes: Object.fromEntries(config.volumes.map((path) => [path, {}])) }),
      User: config.user ?? '',
      WorkingDir: config.workingDir ?? '/',
      Labels: config.labels ?? {},
      ...(config.stopSignal === undefined ? {} : { StopSignal: config.stopSignal }),
      ...(healthcheck === undefined
        ? {}
        : {
            Healthcheck: {
              Test: ['CMD-SHELL', healthcheck.command],
              Interval: nanoseconds(healthcheck.intervalMs),
              Timeout: nanoseconds(healthcheck.timeoutMs),
              Retries: healthcheck.retries,
            },
          }),
      ...config.members,
    },
    rootfs: { type: 'layers', diff_ids: [digestOf(archive)] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'longshore' }],
    ...config.beside,
  });
  const described = ({ bytes, digest }: Blob, mediaType: string): object => ({ mediaType, size: bytes.length, digest });
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: described(configBlob, mediaTypes.config),
    layers: [described(layer, mediaTypes.layer)],
  });
  return { manifest, config: configBlob, layer };
}
