/**
 * Pulls images: one pull for all containers that wait for the same image, and a few pulls at a
 * time. With a login, a pull is shared by the containers of one tenant alone, and an image that is
 * there already is given only to a tenant that has proved its access (access.ts).
 */
import type { PullProgress } from '../../schemas/api/container.ts';
import type { PullPolicy } from '../../schemas/api/fields/container.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import { registryOf, type RegistryLogin } from '../docker/calls/images.ts';
import type { Engine } from '../docker/engine.ts';
import { EngineError } from '../docker/errors.ts';
import type { PullLines } from '../docker/pull-progress.ts';
import type { Metrics, PullState } from '../metrics.ts';
import { withoutSecrets } from '../secrets/redact.ts';
import type { Login, Values } from '../secrets/values.ts';
import type { ImageAccess } from './access.ts';
import { createPullPlaces, type PlaceBounds } from './pull-places.ts';
import type { Permit } from './registries.ts';

/** The container that an image is for. */
export interface PullFor {
  readonly tenant: TenantId;
  readonly id: ContainerId;
}

/** A pull that the engine or the registry refused, with the state of its login. */
export class RefusedPull extends EngineError {
  /** `old`: a newer login may be accepted. */
  readonly login: Login['kind'] | 'old';
  /** See `versionOf`. */
  readonly version: number | undefined;

  constructor({ call, fault, detail }: EngineError, login: Login | 'old') {
    super(call, fault, detail);
    this.name = 'RefusedPull';
    this.login = login === 'old' ? login : login.kind;
    this.version = login === 'old' ? undefined : versionOf(login);
  }
}

/** The image is here only for other tenants, and nothing shows that this one may have it. */
export class PrivateImageError extends EngineError {
  /** The version of the login that proved nothing (`versionOf`). */
  readonly version: number | undefined;

  constructor(reference: string, login?: Login) {
    super('image', { kind: 'refused', status: 403 }, `image ${reference} came with a login of another tenant`);
    this.name = 'PrivateImageError';
    this.version = login === undefined ? undefined : versionOf(login);
  }
}

/** Without a record anybody could use the image, so it is not pulled. */
export class PrivateImagesFull extends EngineError {
  constructor(reference: string) {
    super('image', { kind: 'refused', status: 403 }, `image ${reference}: too many private images of its tenant`);
    this.name = 'PrivateImagesFull';
  }
}

export interface Pulls {
  /**
   * The id of the image, once it is present.
   * @throws RefusedPull, PrivateImageError, PrivateImagesFull, EngineError; RegistryError if the
   * registry is not allowed
   */
  get(reference: string, policy: PullPolicy, forWhom: PullFor): Promise<string>;
  /** The container no longer needs its image; aborts a pull that no container waits for. */
  leave(forWhom: ContainerId): void;
  /** The progress of the pulls that containers wait for. */
  progress(): ReadonlyMap<ContainerId, PullProgress>;
  /** Resolves when a pull makes progress, or the signal aborts. */
  moved(signal: AbortSignal): Promise<void>;
  counts(): Readonly<Record<PullState, number>>;
  stop(): void;
}

interface Pull {
  readonly reference: string;
  readonly login: Login;
  readonly waiting: Map<ContainerId, TenantId>;
  readonly controller: AbortController;
  /** The engine's lines about the pull; `undefined` before it has begun. */
  lines?: PullLines;
}

export interface PullsParts {
  readonly engine: Pick<Engine, 'pull' | 'imageId' | 'checkAccess'>;
  readonly access: Pick<ImageAccess, 'isProved' | 'isPrivate' | 'prove' | 'hasRoom'>;
  readonly logins: Values['login'];
  readonly permit: Permit;
  /** `true` if a registry holds the images that it names (registries.ts). */
  readonly isVouched: (registry: string) => boolean;
  readonly metrics: Pick<Metrics, 'pull'>;
  readonly log: Log;
  readonly bounds?: PlaceBounds;
}

const usualBounds: PlaceBounds = {
  places: limits.concurrentPulls,
  placesAside: limits.concurrentSlowPulls,
  perTenant: limits.pullsPerTenant,
  perRegistry: limits.pullsPerRegistry,
  patienceMs: limits.pullPatienceMs,
};

export function createPulls(parts: PullsParts): Pulls {
  const { engine, access, logins, permit, metrics, log, bounds = usualBounds } = parts;
  const pulls = new Map<string, { readonly pull: Pull; readonly image: Promise<string> }>();
  /** Containers that wait for a login or a pull. */
  const asking = new Set<{ readonly id: ContainerId; readonly controller: AbortController }>();
  const places = createPullPlaces(bounds);
  const moves = createNotify();
  let isQueueLogged = false;

  const onLine = (pull: Pull, lines: PullLines): void => {
    pull.lines = lines;
    moves.notify();
    if (isQueueLogged || !lines.isQueued()) return;
    isQueueLogged = true;
    log.warn('pull_queued_by_engine', { reference: pull.reference });
  };

  const fetchImage = async (pull: Pull, tenant: TenantId): Promise<string> => {
    const { reference, controller, login } = pull;
    const { signal } = controller;
    try {
      await permit(registryOf(reference));
      const given = login.kind === 'login' ? login.login : undefined;
      if (given !== undefined && !access.hasRoom(tenant)) throw new PrivateImagesFull(reference);
      if (reference.includes('@')) await engine.checkAccess(reference, signal, given);
      await engine.pull(reference, signal, { onLine: (lines) => onLine(pull, lines), login: given });
      const id = await engine.imageId(reference);
      if (id === undefined) throw notThere(reference, 'is not there after its pull');
      const who = { tenant, isPublic: given === undefined };
      if (!access.prove(who, id, reference, parts.isVouched(registryOf(reference))))
        throw new PrivateImageError(reference, login);
      metrics.pull('pulled');
      return id;
    } catch (error) {
      if (!signal.aborted) metrics.pull('failed');
      if (error instanceof PrivateImageError || error instanceof PrivateImagesFull) throw error;
      throw login.kind === 'login' && error instanceof EngineError ? withoutLogin(error, login.login) : error;
    }
  };

  const join = (reference: string, { tenant, id }: PullFor, login: Login): Promise<string> => {
    const key = shareOf(reference, tenant, login);
    const known = pulls.get(key);
    if (known !== undefined) {
      known.pull.waiting.set(id, tenant);
      places.reconsider();
      return known.image;
    }
    const pull: Pull = { reference, login, waiting: new Map([[id, tenant]]), controller: new AbortController() };
    const { signal } = pull.controller;
    const ask = { tenants: () => new Set(pull.waiting.values()), registry: registryOf(reference), signal };
    const image = places
      .run(ask, () => fetchImage(pull, tenant))
      .finally(() => {
        if (pulls.get(key)?.pull === pull) pulls.delete(key);
      });
    pulls.set(key, { pull, image });
    return image;
  };

  /**
   * The id of the image that is present, if this container may have it; `undefined` if it must be
   * pulled.
   */
  const present = async (reference: string, policy: PullPolicy, tenant: TenantId): Promise<string | undefined> => {
    if (policy === 'always') return undefined;
    const imageId = await engine.imageId(reference);
    if (imageId !== undefined && access.isProved(tenant, imageId, reference)) return imageId;
    if (policy !== 'never') return undefined;
    if (imageId === undefined) throw notThere(reference, 'is not on this host, and its pull_policy is never');
    // The operator vouches for images that were fetched without a login.
    if (access.isPrivate(imageId)) throw new PrivateImageError(reference);
    return imageId;
  };

  const pullAs = async (
    reference: string,
    policy: PullPolicy,
    forWhom: PullFor,
    signal: AbortSignal,
  ): Promise<string> => {
    const login = await logins(forWhom, registryOf(reference));
    // Another container's pull may have ended meanwhile; this one could wait long for a place.
    const known = signal.aborted ? undefined : await present(reference, policy, forWhom.tenant);
    if (signal.aborted) throw givenUp();
    if (known !== undefined) return known;
    try {
      return await join(reference, forWhom, login);
    } catch (error) {
      if (!(error instanceof EngineError) || error.fault.kind !== 'refused') throw error;
      if (error instanceof PrivateImageError || error instanceof PrivateImagesFull) throw error;
      const isOld = !isSame(login, await logins(forWhom, registryOf(reference)));
      throw new RefusedPull(error, isOld ? 'old' : login);
    }
  };

  return {
    get: async (reference, policy, forWhom) => {
      const known = await present(reference, policy, forWhom.tenant);
      if (known !== undefined) {
        metrics.pull('present');
        return known;
      }
      const asked = { id: forWhom.id, controller: new AbortController() };
      asking.add(asked);
      try {
        return await pullAs(reference, policy, forWhom, asked.controller.signal);
      } finally {
        asking.delete(asked);
      }
    },
    leave: (id) => {
      for (const asked of asking) if (asked.id === id) asked.controller.abort();
      for (const [key, { pull }] of pulls) {
        if (!pull.waiting.delete(id) || pull.waiting.size > 0) continue;
        pulls.delete(key);
        pull.controller.abort();
      }
      places.reconsider();
    },
    progress: () => {
      const all = new Map<ContainerId, PullProgress>();
      for (const { pull } of pulls.values()) {
        const progress = pull.lines?.progress();
        if (progress !== undefined) for (const id of pull.waiting.keys()) all.set(id, progress);
      }
      return all;
    },
    moved: (signal) => moves.wait(undefined, signal),
    counts: () => ({
      ...places.counts(),
      queued: [...pulls.values()].filter(({ pull }) => pull.lines?.isQueued() === true).length,
    }),
    stop: () => {
      for (const { controller } of asking) controller.abort();
      for (const { pull } of pulls.values()) pull.controller.abort();
    },
  };
}

/**
 * The key by which containers share one pull: containers of one tenant and version of its login, or
 * all that have no login. Containers with an unknown login are apart, because their failure means
 * less.
 */
function shareOf(reference: string, tenant: TenantId, login: Login): string {
  switch (login.kind) {
    case 'login':
      return `${reference} ${tenant} ${login.login.version}`;
    case 'none':
      return reference;
    case 'unknown':
      return `${reference} ?`;
  }
}

/** 0 if the tenant has no login; `undefined` if it is unknown whether it has one. */
function versionOf(login: Login): number | undefined {
  switch (login.kind) {
    case 'login':
      return login.login.version;
    case 'none':
      return 0;
    case 'unknown':
      return undefined;
  }
}

/** `true` if no newer login could have made a difference. */
const isSame = (used: Login, now: Login): boolean => {
  if (used.kind !== 'login') return used.kind === now.kind;
  return now.kind === 'login' && now.isCurrent && now.login.version === used.login.version;
};

/** A registry may repeat the login that it was given. */
const withoutLogin = (error: EngineError, { username, password }: RegistryLogin): EngineError => {
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  return new EngineError(error.call, error.fault, withoutSecrets(error.detail, [password, basic]));
};

const givenUp = (): EngineError => new EngineError('image pull', { kind: 'aborted' }, 'given up');

const notThere = (reference: string, what: string): EngineError =>
  new EngineError('image', { kind: 'refused', status: 404 }, `image ${reference} ${what}: not found`);
