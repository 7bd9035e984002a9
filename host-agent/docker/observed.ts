/**
 * A container as the engine shows it, as far as decisions depend on it. Pure, except `observe`,
 * which asks the given engine.
 */
import { isDeepStrictEqual, stripVTControlCharacters } from 'node:util';
import type { ImageSeen, PortAddress } from '../../schemas/api/container.ts';
import { digestPattern } from '../../schemas/api/fields/container.ts';
import { isTenantId, type ContainerId, type TenantId } from '../../schemas/ids.ts';
import type { Inspection } from './answers.ts';
import { keptSettings, type KeptSettings } from './kept-settings.ts';
import { limits } from '../../schemas/limits.ts';
import { withoutControls } from '../../schemas/visible.ts';
import type { CachedEngine } from './cached-engine.ts';
import { containerIn, labels, tenantIn } from './ownership.ts';

/** Characters that are kept of the output of a failed health check. */
const healthFaultChars = 512;

/** One run of a container, from a start to its end; a start that fails makes none. */
export type RunId = string;

const isDigest = new RegExp(digestPattern);

export type Health = 'none' | 'starting' | 'healthy' | 'unhealthy';

export type EngineState =
  | { readonly phase: 'created' }
  | {
      readonly phase: 'running';
      readonly run: RunId;
      readonly startedAtMs: number;
      readonly health: Health;
      /** The output of the last failed check, or its exit code. */
      readonly healthFault?: string;
      /** The container's address on the bridge. */
      readonly ip?: string;
      readonly addresses: readonly PortAddress[];
    }
  | { readonly phase: 'paused'; readonly run: RunId }
  | { readonly phase: 'exited'; readonly run: RunId; readonly exit: Exit }
  /** The engine is removing it, or failed to. */
  | { readonly phase: 'removing' }
  | { readonly phase: 'dead' };

export interface Exit {
  readonly exitCode: number;
  readonly oomKilled: boolean;
  readonly upMs: number;
  /** By the engine's clock, which is this machine's wall clock. */
  readonly endedAtMs: number;
  /** The engine's error if the start failed; empty after an ordinary end. */
  readonly error: string;
}

export interface Found {
  readonly dockerId: string;
  readonly tenant: TenantId;
  readonly id: ContainerId;
  readonly placement: number;
  readonly spec: string;
  /**
   * The image that the container was made from. From a label: image stores differ in what they
   * return.
   */
  readonly imageId: string;
  /**
   * From labels, too; `undefined` if the image came from no registry, or an older agent made the
   * container.
   */
  readonly image?: ImageSeen;
  readonly state: EngineState;
  /**
   * The limits that the engine applies; those that it does not report, or does not enforce, are
   * absent.
   */
  readonly limits?: Partial<KeptSettings>;
  /** `true` if somebody has changed the limits: they are not those that its version declares. */
  readonly hasOtherLimits?: boolean;
  /** Paths of its volumes. */
  readonly volumes?: readonly string[];
  /** `true` if the container has name servers from Longshore or its tenant. */
  readonly isNamed?: boolean;
  /** The container whose network it shares; `null` if it has a network namespace of its own. */
  readonly sandbox: SandboxSeen | null;
}

/** The sandbox of a container. A container without one that is up has no network. */
export interface SandboxSeen {
  readonly dockerId: string;
  readonly state: 'up' | 'down' | 'gone';
}

/** The id of the sandbox in a network mode; `undefined` if it names none. */
export const sandboxOf = (networkMode: string | undefined): string | undefined =>
  networkMode?.startsWith(sharedNetwork) === true ? networkMode.slice(sharedNetwork.length) : undefined;

const sharedNetwork = 'container:';

/**
 * `extra`: other containers with the same id, which should not exist; the agent removes them in any
 * case.
 */
export type Observed =
  { readonly kind: 'absent' } | { readonly kind: 'present'; readonly found: Found; readonly extra: readonly Found[] };

export const absent: Observed = { kind: 'absent' };

/**
 * `undefined` for a container whose labels name no tenant or container: no agent made it.
 * @param sandbox the inspection of its sandbox, if it has one that is there
 */
export function foundFrom(inspection: Inspection, sandbox?: Inspection): Found | undefined {
  const marks = inspection.Config.Labels ?? {};
  const tenant = tenantIn(marks);
  const id = containerIn(marks);
  if (!isTenantId(tenant) || id === undefined) return undefined;
  return {
    dockerId: inspection.Id,
    tenant,
    id,
    placement: Number(marks[labels.placement] ?? Number.NaN),
    spec: marks[labels.spec] ?? '',
    imageId: marks[labels.image] ?? '',
    ...imageFrom(marks),
    state: stateFrom(inspection, sandbox ?? inspection),
    sandbox: sandboxFrom(inspection, sandbox),
    limits: limitsFrom(inspection),
    volumes: volumesFrom(inspection),
    isNamed: (inspection.Mounts ?? []).some(({ Destination }) => Destination === resolvConfPath),
  };
}

/** The file of a container with its name servers. */
export const resolvConfPath = '/etc/resolv.conf';

function imageFrom(marks: Readonly<Record<string, string>>): Pick<Found, 'image'> {
  const { [labels.digest]: digest = '', [labels.resolvedAt]: resolved_at = '' } = marks;
  return isDigest.test(digest) && !Number.isNaN(Date.parse(resolved_at)) ? { image: { digest, resolved_at } } : {};
}

/** The engine's default for `CpuShares`. */
export const usualCpuShares = 1024;

/** Leaves out the settings that the engine shows as unset. */
export const limitsFrom = ({ HostConfig = {} }: Inspection) =>
  Object.fromEntries(
    Object.entries(keptSettings).flatMap(([name, schema]) => {
      const unset = 'default' in schema ? schema.default : null;
      const value = HostConfig[name as keyof KeptSettings] ?? unset;
      return isDeepStrictEqual(value, unset) ? [] : [[name, value]];
    }),
  ) as Partial<KeptSettings>;

/** The wanted settings that the engine applies differently; empty if there are none. */
export const otherLimits = ({ limits = {} }: Pick<Found, 'limits'>, wanted: Partial<KeptSettings>) =>
  Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => {
      const seen = limits[name as keyof KeptSettings];
      return seen !== undefined && !isDeepStrictEqual(seen, value);
    }),
  ) as Partial<KeptSettings>;

/** The path at which the engine mounts a volume: `/data` for `/data/`, `./data` and `data`. */
export function volumePath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

function volumesFrom({ Mounts }: Inspection): string[] {
  const paths = (Mounts ?? []).flatMap(({ Type, Destination }) => (Type === 'volume' ? (Destination ?? []) : []));
  return [...new Set(paths.map(volumePath))]
    .filter(({ length }) => length <= limits.volumePathChars)
    .toSorted()
    .slice(0, limits.imageVolumes);
}

function sandboxFrom({ HostConfig }: Inspection, sandbox: Inspection | undefined): SandboxSeen | null {
  const dockerId = sandboxOf(HostConfig?.NetworkMode);
  if (dockerId === undefined) return null;
  if (sandbox === undefined) return { dockerId, state: 'gone' };
  return { dockerId, state: sandbox.State.Status === 'running' ? 'up' : 'down' };
}

function stateFrom({ Id, State }: Inspection, { NetworkSettings }: Pick<Inspection, 'NetworkSettings'>): EngineState {
  const run = `${Id}:${State.StartedAt}`;
  const startedAtMs = Date.parse(State.StartedAt);
  switch (State.Status) {
    case 'running':
    case 'restarting':
      return {
        phase: 'running',
        run,
        startedAtMs,
        ...healthFrom(State.Health),
        ...addressFrom(NetworkSettings.Networks ?? {}),
        addresses: addressesFrom(NetworkSettings.Ports ?? {}),
      };
    case 'paused':
      return { phase: 'paused', run };
    case 'exited': {
      const endedAtMs = Date.parse(State.FinishedAt);
      const upMs = Math.max(0, endedAtMs - startedAtMs);
      const exit = { exitCode: State.ExitCode, oomKilled: State.OOMKilled, upMs, endedAtMs, error: State.Error };
      return { phase: 'exited', run, exit };
    }
    case 'removing':
      return { phase: 'removing' };
    case 'dead':
      return { phase: 'dead' };
    default:
      return { phase: 'created' };
  }
}

function healthFrom(given: Inspection['State']['Health']): { readonly health: Health; readonly healthFault?: string } {
  const status = given?.Status;
  if (status !== 'starting' && status !== 'healthy' && status !== 'unhealthy') return { health: 'none' };
  const failed = given?.Log?.findLast(({ ExitCode }) => ExitCode !== 0);
  if (status !== 'unhealthy' || failed === undefined) return { health: status };
  // This is text of the image, which people read at terminals.
  const output = withoutControls(stripVTControlCharacters(failed.Output)).trim().slice(0, healthFaultChars);
  return { health: status, healthFault: output === '' ? `exit code ${failed.ExitCode}` : output };
}

function addressFrom(networks: NonNullable<Inspection['NetworkSettings']['Networks']>): { readonly ip?: string } {
  const [ip] = Object.values(networks).flatMap(({ IPAddress }) => IPAddress || []);
  return ip === undefined ? {} : { ip };
}

function addressesFrom(ports: NonNullable<Inspection['NetworkSettings']['Ports']>): PortAddress[] {
  const addresses: PortAddress[] = [];
  for (const [port, bindings] of Object.entries(ports)) {
    for (const { HostIp, HostPort } of bindings ?? []) {
      const ip = HostIp.includes(':') ? `[${HostIp}]` : HostIp;
      addresses.push({ port, address: `${ip}:${HostPort}` });
    }
  }
  return addresses.sort((left, right) => left.port.localeCompare(right.port, 'en', { numeric: true }));
}

/**
 * Of several with one id, the newest placement counts, then one that was made for this spec, then
 * one that runs; the others are extra.
 */
export function observedFrom(found: readonly Found[], spec?: string): Observed {
  const up = ({ state }: Found) => (state.phase === 'running' || state.phase === 'paused' ? 1 : 0);
  const [first, ...extra] = found.toSorted(
    (left, right) =>
      right.placement - left.placement ||
      Number(right.spec === spec) - Number(left.spec === spec) ||
      up(right) - up(left) ||
      (left.dockerId < right.dockerId ? -1 : 1),
  );
  return first === undefined ? absent : { kind: 'present', found: first, extra };
}

type Inspecting = Pick<CachedEngine, 'idsOf' | 'inspect' | 'endOf'>;

/**
 * All containers of the engine with this id.
 * @param isEndEnough `true` if the exit code and error of one that has ended are not needed
 */
export async function observe(engine: Inspecting, id: ContainerId, isEndEnough: boolean): Promise<Found[]> {
  const found: Found[] = [];
  for (const dockerId of await engine.idsOf(id)) {
    const inspection = (isEndEnough ? engine.endOf(dockerId) : undefined) ?? (await engine.inspect(dockerId));
    const each = inspection === undefined ? undefined : foundFrom(inspection, await sandboxOn(engine, inspection));
    if (each !== undefined) found.push(each);
  }
  return found;
}

async function sandboxOn(engine: Inspecting, { HostConfig }: Inspection): Promise<Inspection | undefined> {
  const dockerId = sandboxOf(HostConfig?.NetworkMode);
  return dockerId === undefined ? undefined : engine.inspect(dockerId);
}
