/**
 * The parts of the engine's answers that the agent reads (Docker Engine API v1.41 and later). Only
 * these are kept while an answer arrives (`shapes`); images and containers decide how large the
 * rest is. `keep` in a schema is the shape of a part that is kept otherwise.
 */
import Type, { type Static, type TSchema } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { Some, type Shape } from './json-filter.ts';
import { keptSettings } from './kept-settings.ts';
import { labels } from './ownership.ts';

/** Bytes of an event's action that are read: `exec_create` repeats a whole command after it. */
const engineActionBytes = 64;
/**
 * Bytes of a label of Longshore that are read. The agent writes no longer one, but an image may
 * have labels of the same names.
 */
const ourLabelBytes = 1024;
/** Names of one image that are read, of each kind. */
const imageNamesRead = 2000;

const nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const ourLabels = Object.fromEntries(Object.values(labels).map((label) => [label, ourLabelBytes]));
const Labels = Type.Record(Type.String(), Type.String(), { keep: ourLabels });

/** `GET /version` */
export const Version = Type.Object({
  Version: Type.String(),
  ApiVersion: Type.String({ pattern: '^\\d+\\.\\d+$' }),
  MinAPIVersion: Type.Optional(Type.String({ pattern: '^\\d+\\.\\d+$' })),
});

/** `GET /info` */
export const Info = Type.Object({
  NCPU: Type.Integer(),
  MemTotal: Type.Integer(),
  DockerRootDir: Type.Optional(Type.String()),
  Architecture: Type.Optional(Type.String()),
  /** The limits that the engine's kernel can enforce. */
  SwapLimit: Type.Optional(Type.Boolean()),
  PidsLimit: Type.Optional(Type.Boolean()),
  CPUShares: Type.Optional(Type.Boolean()),
  CPUSet: Type.Optional(Type.Boolean()),
});
export type Info = Static<typeof Info>;

/** `container:<id>`: the container shares the network namespace of that one. */
const NetworkModeOf = Type.Optional(Type.Object({ NetworkMode: Type.Optional(Type.String()) }));

/** `GET /containers/json` */
export const Summaries = Type.Array(
  Type.Object({
    Id: Type.String(),
    State: Type.String(),
    Status: Type.String(),
    Labels: nullable(Labels),
    HostConfig: NetworkModeOf,
    /** Absent if this engine does not list networks. */
    NetworkSettings: Type.Optional(
      nullable(Type.Object({ Networks: Type.Optional(nullable(Type.Record(Type.String(), Type.Unknown()))) })),
    ),
  }),
);
export type Summary = Static<typeof Summaries>[number];

/**
 * The state of the health check, from the text of the engine's list; `undefined` if the container
 * has no check.
 */
export const healthIn = ({ Status }: Pick<Summary, 'Status'>): string | undefined =>
  /\((?:health: )?(healthy|unhealthy|starting)\)/.exec(Status)?.[1];

/** `GET /containers/{id}/json` */
export const Inspection = Type.Object({
  Id: Type.String(),
  State: Type.Object({
    Status: Type.String(),
    /** The process id of its first process; 0 if it does not run. */
    Pid: Type.Optional(Type.Integer()),
    OOMKilled: Type.Boolean(),
    ExitCode: Type.Integer(),
    Error: Type.String(),
    StartedAt: Type.String(),
    FinishedAt: Type.String(),
    Health: Type.Optional(
      nullable(
        Type.Object({
          Status: Type.String(),
          /** The last five checks. */
          Log: Type.Optional(nullable(Type.Array(Type.Object({ ExitCode: Type.Integer(), Output: Type.String() })))),
        }),
      ),
    ),
  }),
  /** The id of the container's image. */
  Image: Type.Optional(Type.String()),
  Config: Type.Object({ Labels: nullable(Labels) }),
  Mounts: Type.Optional(
    nullable(
      Type.Array(
        Type.Object({
          Type: Type.String(),
          /** The name of a volume. */
          Name: Type.Optional(Type.String()),
          Destination: Type.Optional(Type.String()),
        }),
      ),
    ),
  ),
  HostConfig: Type.Optional(Type.Partial(Type.Object({ NetworkMode: Type.String(), ...keptSettings }))),
  NetworkSettings: Type.Object({
    /** The file of the container's network namespace; empty if it has none. */
    SandboxKey: Type.Optional(Type.String()),
    Networks: Type.Optional(
      nullable(Type.Record(Type.String(), Type.Object({ IPAddress: Type.Optional(Type.String()) }))),
    ),
    Ports: Type.Optional(
      nullable(
        Type.Record(
          Type.String(),
          nullable(Type.Array(Type.Object({ HostIp: Type.String(), HostPort: Type.String() }))),
        ),
      ),
    ),
  }),
});
export type Inspection = Static<typeof Inspection>;

/** `GET /containers/{id}/stats`: one document, or one a second. */
export const Stats = Type.Object({
  cpu_stats: Type.Object({ cpu_usage: Type.Object({ total_usage: Type.Number() }) }),
  /** Empty if the container does not run. */
  memory_stats: Type.Object({
    usage: Type.Optional(Type.Number()),
    limit: Type.Optional(Type.Number()),
    stats: Type.Optional(
      Type.Partial(Type.Object({ total_inactive_file: Type.Number(), inactive_file: Type.Number() })),
    ),
  }),
  pids_stats: Type.Optional(Type.Object({ current: Type.Optional(Type.Number()) })),
  networks: Type.Optional(
    Type.Record(Type.String(), Type.Object({ rx_bytes: Type.Number(), tx_bytes: Type.Number() })),
  ),
});
export type Stats = Static<typeof Stats>;

/**
 * Memory in use: without the kernel's cache of files that were not read lately, as `docker stats`
 * shows it (cgroup v1 and v2).
 */
export const withoutInactive = (bytes: number, inactive: number): number =>
  inactive < bytes ? bytes - inactive : bytes;

export const memoryIn = ({ memory_stats: { usage = 0, stats = {} } }: Pick<Stats, 'memory_stats'>): number =>
  withoutInactive(usage, stats.total_inactive_file ?? stats.inactive_file ?? 0);

/** `GET /networks` */
export const Networks = Type.Array(
  Type.Object({
    Id: Type.String(),
    Name: Type.String(),
    Created: Type.String(),
    Options: Type.Optional(nullable(Labels)),
    IPAM: Type.Optional(
      Type.Object({
        Config: Type.Optional(
          nullable(
            Type.Array(Type.Object({ Gateway: Type.Optional(Type.String()), Subnet: Type.Optional(Type.String()) })),
          ),
        ),
      }),
    ),
  }),
);
export type Network = Static<typeof Networks>[number];

/** `GET /volumes` */
export const Volumes = Type.Object({
  Volumes: Type.Optional(nullable(Type.Array(Type.Object({ Name: Type.String(), Labels: nullable(Labels) })))),
});
export type Volume = NonNullable<Static<typeof Volumes>['Volumes']>[number];

export const Image = Type.Object({ Id: Type.String() });

/** `GET /containers/{id}/json?size=1` */
export const Written = Type.Object({
  SizeRw: Type.Optional(nullable(Type.Integer())),
  Mounts: Type.Optional(nullable(Type.Array(Type.Object({ Type: Type.String(), Name: Type.Optional(Type.String()) })))),
});

/** `GET /system/df`. A size of -1 means unknown. */
export const DiskUsage = Type.Object({
  Volumes: Type.Optional(
    nullable(
      Type.Array(
        Type.Object({
          Name: Type.String(),
          UsageData: Type.Optional(nullable(Type.Object({ Size: Type.Integer() }))),
        }),
      ),
    ),
  ),
});

/** An element of `GET /images/json`. Of very many names, it has the first. */
export const ImageSummary = Type.Object({
  Id: Type.String(),
  RepoTags: Type.Optional(nullable(Type.Array(Type.String()))),
  RepoDigests: Type.Optional(nullable(Type.Array(Type.String()))),
  /** In bytes, with the layers that other images share. */
  Size: Type.Optional(Type.Number()),
});
export type ImageSummary = Static<typeof ImageSummary>;

/** `GET /containers/json`, of all containers of the engine. */
export const ImagesInUse = Type.Array(Type.Object({ ImageID: Type.String() }));

/**
 * `GET /images/{id}/json`: the image's own configuration, which the engine repeats for each of its
 * containers.
 */
const Words = Type.Optional(nullable(Type.Array(Type.String())));
const Members = Type.Optional(nullable(Type.Record(Type.String(), Type.Unknown())));
/** Times in nanoseconds; 0 or absent means the engine's default. */
const ImageCheck = Type.Object({
  Test: Words,
  Interval: Type.Optional(Type.Number()),
  Timeout: Type.Optional(Type.Number()),
  StartPeriod: Type.Optional(Type.Number()),
  StartInterval: Type.Optional(Type.Number()),
  Retries: Type.Optional(Type.Number()),
});
export type ImageCheck = Static<typeof ImageCheck>;
export const ImageDetails = Type.Object({
  Id: Type.String(),
  /** `repository@digest` of the repository in the question: at most one. */
  RepoDigests: Type.Optional(nullable(Type.Array(Type.String()))),
  /** With all its members, so that none is beyond the limits. */
  Config: Type.Optional(
    nullable(
      Type.Object({
        Labels: Type.Optional(nullable(Labels)),
        Entrypoint: Words,
        Cmd: Words,
        Env: Words,
        Healthcheck: Type.Optional(nullable(ImageCheck)),
        ExposedPorts: Members,
        Volumes: Members,
      }),
    ),
  ),
});
export type ImageDetails = Static<typeof ImageDetails>;
export const Created = Type.Object({ Id: Type.String() });
export const Failure = Type.Object({ message: Type.String() });

/**
 * A line of `POST /images/create`: progress, or the error that ends it (the HTTP status was 200
 * long before).
 */
export const PullLine = Type.Object({
  /** From API 1.48 on it may be left out; `errorDetail` is there in all versions. */
  error: Type.Optional(Type.String()),
  errorDetail: Type.Optional(nullable(Type.Object({ message: Type.Optional(Type.String()) }))),
  /** The first twelve digits of a layer's digest, or a tag. */
  id: Type.Optional(Type.String()),
  status: Type.Optional(Type.String()),
  progressDetail: Type.Optional(
    nullable(Type.Object({ current: Type.Optional(Type.Number()), total: Type.Optional(Type.Number()) })),
  ),
});
export type PullLine = Static<typeof PullLine>;

/** A line of `GET /events`. */
export const EngineEvent = Type.Object({
  Action: Type.Optional(Type.String({ keep: engineActionBytes })),
  Actor: Type.Optional(
    Type.Object({
      ID: Type.String(),
      Attributes: Type.Record(Type.String(), Type.String(), { keep: { ...ourLabels, exitCode: true } }),
    }),
  ),
  timeNano: Type.Optional(Type.Number()),
});
export type EngineEvent = Static<typeof EngineEvent>;

const imageNames: Shape = [new Some(imageNamesRead)];

/** Keeps the members in an object's schema, and other values whole. */
function shapeOf(schema: TSchema): Shape {
  if ('keep' in schema) return schema.keep as Shape;
  if (Type.IsUnion(schema)) return schema.anyOf.map(shapeOf)[0] ?? true;
  if (Type.IsArray(schema)) return [shapeOf(schema.items)];
  if (!Type.IsObject(schema)) return true;
  return Object.fromEntries(Object.entries(schema.properties).map(([name, each]) => [name, shapeOf(each)]));
}

export const shapes = {
  summaries: shapeOf(Summaries),
  inspection: shapeOf(Inspection),
  stats: shapeOf(Stats),
  image: shapeOf(Image),
  written: shapeOf(Written),
  diskUsage: shapeOf(DiskUsage),
  volumes: shapeOf(Volumes),
  images: [{ Id: true, RepoTags: imageNames, RepoDigests: imageNames, Size: true }],
  imagesInUse: shapeOf(ImagesInUse),
  // All text of its maker that the engine returns; its names and sizes are of others, too.
  imageDetails: { Id: true, Config: true, ContainerConfig: true, Author: true, Comment: true },
  history: [{ CreatedBy: true, Comment: true }],
  event: shapeOf(EngineEvent),
  // An image's event has all labels of the image.
  change: { Action: engineActionBytes },
} as const satisfies Record<string, Shape>;

/**
 * A process started beside that of a container. `Pid` is the process id on the engine's machine, or
 * 0 if there is none.
 */
const ExecState = Type.Object({
  Running: Type.Boolean(),
  ExitCode: Type.Union([Type.Integer(), Type.Null()]),
  Pid: Type.Integer(),
});
export type ExecState = Static<typeof ExecState>;

export const decode = {
  execState: decoder(ExecState),
  version: decoder(Version),
  info: decoder(Info),
  summaries: decoder(Summaries),
  inspection: decoder(Inspection),
  stats: decoder(Stats),
  networks: decoder(Networks),
  volumes: decoder(Volumes),
  image: decoder(Image),
  imageDetails: decoder(ImageDetails),
  written: decoder(Written),
  diskUsage: decoder(DiskUsage),
  imageSummary: decoder(ImageSummary),
  imagesInUse: decoder(ImagesInUse),
  created: decoder(Created),
  failure: decoder(Failure),
  pullLine: decoder(PullLine),
  event: decoder(EngineEvent),
} as const;
