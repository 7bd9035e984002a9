/**
 * The engine with a cache that its events keep correct: the containers of this host, their
 * inspections, its images and its network. So a start needs a create, a start, one inspection and
 * the logs.
 *
 * It answers from memory only while the events are read and all containers were listed since; else
 * it asks the engine. A question is repeated if its subject changes while it is under way, and an
 * inspection is repeated if no list has confirmed it for `limits.inspectionTrustMs`.
 */
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import {
  healthIn,
  type EngineEvent,
  type ImageDetails,
  type Inspection,
  type Network,
  type Summary,
} from './answers.ts';
import type { Labels } from './calls/client.ts';
import type { ContainerBody } from './calls/containers.ts';
import type { Engine } from './engine.ts';
import { repositoryOf } from './image-names.ts';
import { createMemo } from './memo.ts';
import { containerIn, isOwnedBy, labels, ownerLabels, tenantIn, type Owner } from './ownership.ts';

/** References whose images are known without asking the engine. */
const imagesRemembered = 1000;
/** Images whose configuration is known without asking; each is at most `imageConfigBytes`. */
const imageDetailsRemembered = 16;

export interface CachedEngine extends Engine {
  /** All containers of this host, asked of the engine. @throws EngineError */
  listAll(): Promise<Summary[]>;
  /**
   * The tenants' containers of this host: the same array while nothing about them has changed.
   * @throws EngineError
   */
  containers(): Promise<readonly KnownContainer[]>;
  /** Ids of the engine for the containers of this id. @throws EngineError */
  idsOf(id: ContainerId): Promise<readonly string[]>;
  /**
   * A container that has ended, from the engine's event alone: the engine answers an inspection
   * only when it has cleaned up. Lacks `OOMKilled` and `Error`. `undefined` if there was no such
   * event, or the container was inspected since.
   */
  endOf(dockerId: string): Inspection | undefined;
  /** @param isWatched `true` if `heard` and `heardChange` get every event from now on */
  setWatched(isWatched: boolean): void;
  /** @returns the container to reconcile; `undefined` if the event is no news */
  heard(event: EngineEvent): ContainerId | undefined;
  /** An image or a network of the engine has changed. */
  heardChange(): void;
}

export interface KnownContainer {
  readonly dockerId: string;
  readonly id: ContainerId;
  /** Empty if the container has no label of a tenant. */
  readonly tenant: string;
  /** The engine's state of the container; `undefined` if no list has named it yet. */
  readonly state: string | undefined;
}

interface Entry {
  readonly id: ContainerId | undefined;
  readonly tenant: string;
  state: string | undefined;
  /** The number of the last change, by an event or by this agent. */
  change: number;
  seen: Inspection | undefined;
  /** The time at which `seen` was last known to be true; `undefined` if it may be out of date. */
  seenAtMs: number | undefined;
  ended: Inspection | undefined;
}

const unseen = { state: undefined, seen: undefined, seenAtMs: undefined, ended: undefined };

/** Actions that leave a container's state as it was. Health checks cause many `exec_`. */
const idleActions =
  /^(?:exec_|kill|stop|oom|restart|attach|detach|resize|top|copy|commit|export|archive-path|extract-to-dir)/;

const stateAfter: Readonly<Record<string, string>> = {
  create: 'created',
  start: 'running',
  unpause: 'running',
  pause: 'paused',
  die: 'exited',
};

/** @param steadyMs a clock that never steps */
export function createCachedEngine(engine: Engine, owner: Owner, steadyMs: () => number): CachedEngine {
  const entries = new Map<string, Entry>();
  const byContainer = new Map<ContainerId, Set<string>>();
  /** Containers that were removed while a list was under way, which may still name them. */
  const removed = new Set<string>();
  /** The answer of `containers`; `undefined` if something has changed since. */
  let known: readonly KnownContainer[] | undefined;
  let changes = 0;
  let lists = 0;
  let isWatched = false;
  let isListed = false;
  const isTrusted = (): boolean => isWatched && isListed;

  const isKnown = <T>(answer: T | undefined): boolean => answer !== undefined;
  const imageIds = createMemo<string | undefined>(imagesRemembered, isKnown);
  const imageDetails = createMemo<ImageDetails | undefined>(imageDetailsRemembered, isKnown);
  const networks = createMemo<Network[]>(1, (found) => found.length > 0);
  const forgetAll = (): void => {
    for (const memo of [imageIds, imageDetails, networks]) memo.clear();
  };
  /** `undefined` if nothing may be cached now. */
  const keyOf = (key: string): string | undefined => (isTrusted() ? key : undefined);

  const add = (dockerId: string, marks: Labels | null | undefined, change: number): Entry => {
    const before = entries.get(dockerId);
    if (before !== undefined) return before;
    const id = containerIn(marks);
    const tenant = tenantIn(marks);
    const entry: Entry = { id, tenant, change, ...unseen };
    entries.set(dockerId, entry);
    known = undefined;
    if (id !== undefined) byContainer.set(id, (byContainer.get(id) ?? new Set()).add(dockerId));
    return entry;
  };
  const drop = (dockerId: string): void => {
    const id = entries.get(dockerId)?.id;
    if (entries.delete(dockerId)) known = undefined;
    const others = id === undefined ? undefined : byContainer.get(id);
    others?.delete(dockerId);
    if (id !== undefined && others?.size === 0) byContainer.delete(id);
  };
  const isNow = (entry: Entry, state: string | undefined): void => {
    if (state === undefined || state === entry.state) return;
    entry.state = state;
    known = undefined;
  };
  const changed = (dockerId: string): void => {
    const entry = entries.get(dockerId);
    if (entry === undefined) return;
    entry.change = ++changes;
    entry.seenAtMs = undefined;
    entry.ended = undefined;
  };
  const changing = async <T>(dockerId: string, call: Promise<T>): Promise<T> => {
    try {
      return await call;
    } finally {
      changed(dockerId);
    }
  };

  const saw = (entry: Entry, seen: Inspection): void => {
    entry.seen = seen;
    entry.seenAtMs = steadyMs();
    entry.ended = undefined;
    isNow(entry, seen.State.Status);
  };

  const note = (asked: string, seen: Inspection | undefined, since: number): void => {
    if (seen === undefined) {
      const entry = entries.get(asked);
      if (entry !== undefined && entry.change <= since) drop(asked);
      return;
    }
    if (!isOwnedBy(owner, seen.Config.Labels)) return;
    const entry = add(seen.Id, seen.Config.Labels, since);
    if (entry.change > since) return;
    saw(entry, seen);
  };

  const applyList = (summaries: readonly Summary[], since: number): void => {
    const listed = new Set<string>();
    for (const summary of summaries) {
      const { Id, Labels, State } = summary;
      listed.add(Id);
      if (removed.has(Id)) continue;
      const entry = add(Id, Labels, since);
      if (entry.change > since) continue;
      isNow(entry, State);
      if (entry.seenAtMs === undefined) continue;
      const health = healthIn(summary) ?? 'none';
      const isSame = entry.seen?.State.Status === State && (entry.seen.State.Health?.Status ?? 'none') === health;
      entry.seenAtMs = isSame ? steadyMs() : undefined;
    }
    for (const [dockerId, { change }] of entries) if (!listed.has(dockerId) && change <= since) drop(dockerId);
  };

  const heardEnd = (dockerId: string, exitCode: string | undefined, timeNano: number | undefined): void => {
    const entry = entries.get(dockerId);
    if (entry?.seen === undefined || exitCode === undefined || timeNano === undefined) return;
    const FinishedAt = new Date(timeNano / 1e6).toISOString();
    const State = { ...entry.seen.State, Status: 'exited', ExitCode: Number(exitCode), FinishedAt };
    entry.ended = { ...entry.seen, State };
  };

  return {
    ...engine,

    listAll: async () => {
      const since = changes;
      const wasWatched = isWatched;
      lists += 1;
      try {
        const summaries = await engine.list(ownerLabels(owner));
        applyList(summaries, since);
        isListed = wasWatched && isWatched;
        return summaries;
      } finally {
        lists -= 1;
        if (lists === 0) removed.clear();
      }
    },
    containers: async () => {
      if (!isTrusted()) return (await engine.list(ownerLabels(owner))).flatMap(knownFrom);
      known ??= [...entries].flatMap(([dockerId, { id, tenant, state }]) =>
        id === undefined ? [] : [{ dockerId, id, tenant, state }],
      );
      return known;
    },
    idsOf: async (id) => {
      if (isTrusted()) return [...(byContainer.get(id) ?? [])];
      return (await engine.list({ ...ownerLabels(owner), [labels.container]: id })).map(({ Id }) => Id);
    },
    inspect: async (dockerId) => {
      const entry = entries.get(dockerId);
      const { seen, seenAtMs } = entry ?? {};
      const isFresh = seenAtMs !== undefined && steadyMs() - seenAtMs < limits.inspectionTrustMs;
      if (isTrusted() && isFresh && seen !== undefined) return seen;
      const since = changes;
      const inspection = await engine.inspect(dockerId);
      note(dockerId, inspection, since);
      return inspection;
    },
    endOf: (dockerId) => (isTrusted() ? entries.get(dockerId)?.ended : undefined),

    create: async (name, body) => {
      const result = await engine.create(name, body);
      if (result.kind === 'no_image') forgetAll();
      if (result.kind === 'created' && isOwnedBy(owner, body.Labels)) {
        saw(add(result.id, body.Labels, ++changes), justCreated(result.id, body));
      }
      return result;
    },
    upload: (dockerId, tar) => changing(dockerId, engine.upload(dockerId, tar)),
    start: (dockerId) => changing(dockerId, engine.start(dockerId)),
    stop: (dockerId, graceMs) => changing(dockerId, engine.stop(dockerId, graceMs)),
    stopBy: (dockerId, signal, graceMs) => changing(dockerId, engine.stopBy(dockerId, signal, graceMs)),
    kill: (dockerId) => changing(dockerId, engine.kill(dockerId)),
    unpause: (dockerId) => changing(dockerId, engine.unpause(dockerId)),
    update: (dockerId, limits) => changing(dockerId, engine.update(dockerId, limits)),
    remove: (dockerId, volumes) => changing(dockerId, engine.remove(dockerId, volumes)),

    pull: async (...given) => {
      try {
        await engine.pull(...given);
      } finally {
        // The event of a tag that has moved may come later than the end of the pull.
        forgetAll();
      }
    },
    imageId: (reference) => imageIds.get(keyOf(reference), () => engine.imageId(reference)),
    imageDetails: (id, reference) =>
      imageDetails.get(keyOf(`${id} ${repositoryOf(reference)}`), () => engine.imageDetails(id, reference)),
    networks: (asked) => networks.get(keyOf(JSON.stringify(asked)), () => engine.networks(asked)),

    setWatched: (next) => {
      isWatched = next;
      isListed = false;
      forgetAll();
    },
    heardChange: forgetAll,
    heard: ({ Action = '', Actor, timeNano }) => {
      const dockerId = Actor?.ID;
      const marks = Actor?.Attributes;
      if (dockerId === undefined || idleActions.test(Action)) return undefined;
      switch (Action) {
        case 'create':
          if (entries.has(dockerId)) return undefined;
          break;
        case 'destroy':
          drop(dockerId);
          if (lists > 0) removed.add(dockerId);
          return containerIn(marks);
        case 'start': {
          // The event of the end of an earlier run would have come before.
          const entry = entries.get(dockerId);
          if (entry?.seenAtMs !== undefined && entry.seen?.State.Status === 'running') return undefined;
          break;
        }
      }
      const entry = add(dockerId, marks, changes);
      changed(dockerId);
      isNow(entry, stateAfter[Action]);
      if (Action === 'die') heardEnd(dockerId, marks?.['exitCode'], timeNano);
      return entry.id;
    },
  };
}

function knownFrom({ Id: dockerId, State: state, Labels }: Summary): KnownContainer[] {
  const id = containerIn(Labels);
  return id === undefined ? [] : [{ dockerId, id, tenant: tenantIn(Labels), state }];
}

const never = '0001-01-01T00:00:00Z';

/** The inspection that the engine would return for it. */
const justCreated = (Id: string, { Labels, HostConfig: { NetworkMode, Mounts = [] } }: ContainerBody): Inspection => ({
  Id,
  State: { Status: 'created', OOMKilled: false, ExitCode: 0, Error: '', StartedAt: never, FinishedAt: never },
  Config: { Labels },
  Mounts: Mounts.map(({ Type, Source: Name, Target: Destination }) => ({ Type, Name, Destination })),
  HostConfig: NetworkMode === undefined ? {} : { NetworkMode },
  NetworkSettings: {},
});
