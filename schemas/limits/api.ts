/** Fields and lists of the HTTP API, and the defaults of caps. */
import { KiB, MiB } from './units.ts';

export const api = {
  envKeys: 200,
  envValueBytes: 32 * KiB,
  envTotalBytes: 64 * KiB,
  /** A container's `process` (docs/api): words of a command and their bytes, maps. */
  processWords: 256,
  processBytes: 32 * KiB,
  processPathChars: 256,
  processSizeChars: 32,
  processTmpfs: 16,
  /** Of a process: open files and processes; and bytes of what it maps, locks or writes. */
  ulimitCountMax: 1024 * 1024,
  ulimitBytesMax: 2 ** 40,
  /** Files of a container (docs/api, `files`): how many, bytes of one, and of all. */
  files: 64,
  fileBytes: 64 * KiB,
  filesBytes: 1 * MiB,
  /** Bytes of the distinct contents of all files of a tenant. */
  filesOfTenantBytes: 32 * MiB,
  /** A document with its files, whose text grows as JSON. */
  documentBytes: 2 * MiB,
  /** Further names of a container (docs/api, `aliases`). */
  aliases: 16,
  /** Containers in the network of a tenant (docs/network). */
  networkMembers: 10_000,
  ports: 50,
  labels: 64,
  labelValueBytes: 256,
  /** The filter of a list by labels (docs/api): characters of one, and how many. */
  labelFilterChars: 63 + 1 + 256,
  labelFilters: 16,
  memBytesMin: 6 * MiB,
  memBytesMax: 16 * 1024 * 1024 * MiB,
  /** Versions of a container that are kept, and the bytes of what they differ in (docs/api). */
  containerVersions: 10,
  versionsBytes: 32 * KiB,
  listDefault: 100,
  listMax: 100,
  /** The overview (docs/api): containers in a page, and values of one filter. */
  overviewMax: 1000,
  overviewFilterValues: 100,
  /**
   * A page of all containers (docs/api): how many one ask looks at, which takes a partition some
   * milliseconds, and how many asks there are.
   */
  operatorScan: 5000,
  /** Containers that one page of a filtered list of a tenant looks at. */
  listScan: 5000,
  operatorAsks: 32,
  logsDefault: 50,
  logsMax: 500,
  /** Containers whose lines one page lists together. */
  logsContainers: 50,
  logFilterChars: 256,
  eventsDefault: 100,
  eventsMax: 500,
  /** Characters of the name, and of the registry and repository of the image (docs/api). */
  containerNameChars: 63,
  /** A policy (docs/api): the longest stop, and what a health check may be. */
  policyStopGraceSeconds: 300,
  /** As long as a job that has ended may be kept by a policy that removes it: 30 days. */
  policyRemoveAfterSeconds: 2_592_000,
  healthSeconds: 3600,
  healthTimeoutSeconds: 300,
  healthRetries: 100,
  healthCommandWords: 64,
  healthCommandBytes: 16 * KiB,
  healthPathChars: 1024,
  imageNameChars: 255,
  /** Secrets and logins of a tenant, and uses of secrets in one container (docs/api). */
  secretBytes: 64 * KiB,
  secretsPerTenant: 100,
  secretUses: 64,
  secretPathChars: 256,
  /** Containers that an answer names for one secret. */
  secretUsersShown: 100,
  secretUsersNamed: 10,
  secretFileIdMax: 2 ** 31 - 2,
  registriesPerTenant: 32,
  keysPerTenant: 100,
  keyScopes: 16,
  registryUsernameChars: 256,
  registryPasswordBytes: 16 * KiB,
} as const;

/** Caps of a tenant until an operator sets others. */
export const defaultCaps = {
  containers: 20,
  cpu_millis: 8000,
  mem_bytes: 16 * 1024 * MiB,
  vpn_peers: 10,
} as const;

/**
 * The most that a host may claim to offer, unless an operator sets another ceiling: far above the
 * largest machine that is sold, and low enough that one lying host does not attract every placement
 * for long.
 */
export const defaultHostCeiling = {
  cpu_millis: 1024 * 1000,
  mem_bytes: 64 * 1024 * 1024 * MiB,
  containers: 10_000,
} as const;
