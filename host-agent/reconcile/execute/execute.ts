/**
 * Carries out one step on the engine and returns the outcome. It decides nothing; `plan.ts` does.
 */
import type { Log } from '../../../lib/log.ts';
import { timestamp } from '../../../lib/time/timestamp.ts';
import type { Reason } from '../../../schemas/api/container.ts';
import { defaultPolicy } from '../../../schemas/api/policy.ts';
import type { DesiredContainer } from '../../../schemas/wire/host.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Capability } from '../../spec/confinement.ts';
import { tarOf } from '../../spec/config-files.ts';
import { diskLimitOf } from '../../disk/plan.ts';
import type { CreateResult } from '../../docker/calls/containers.ts';
import type { Engine } from '../../docker/engine.ts';
import { detailOf, EngineError, isOversized, isRefusal } from '../../docker/errors.ts';
import {
  clearFailure,
  createFailure,
  drainFailure,
  isTaskLeft,
  limitFailure,
  limitsKept,
  pullFailure,
  startFailure,
} from './failures.ts';
import type { Firewall } from '../../network/firewall.ts';
import { imageFault, imageTooLarge, labelNames } from '../../images/check.ts';
import { volumePaths } from '../../volumes/names.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import type { LogCollector } from '../../logs/collector.ts';
import { isNetworkGone } from '../../network/network.ts';
import type { TenantNetwork } from '../../network/tenant-network.ts';
import type { ImageCheck, Network } from '../../docker/answers.ts';
import type { KeptSettings } from '../../docker/kept-settings.ts';
import type { Sandboxes } from '../../sandbox/sandboxes.ts';
import type { Pulls } from '../../images/pulls.ts';
import { RegistryError } from '../../images/registries.ts';
import type { DeclaredFiles, MissingFile } from '../../secrets/declared-files.ts';
import type { SecretFiles } from '../../secrets/files.ts';
import { withoutSecrets } from '../../secrets/redact.ts';
import type { Missing, Values } from '../../secrets/values.ts';
import { resolveSecrets } from '../../spec/secrets.ts';
import { createBody, limitsOf, settingsOf, specHash, type LimitingHost } from '../../spec/create-body.ts';
import { digestFor } from '../../docker/image-names.ts';
import { limitsFrom, otherLimits, sandboxOf } from '../../docker/observed.ts';
import { createStops } from './stops.ts';
import { containerName, isOwnedBy, type Owner } from '../../docker/ownership.ts';
import type { LogSource } from '../../logs/source.ts';
import type { LongStep, Outcome, ShortStep, Step } from '../step.ts';

export interface Executor {
  short(step: ShortStep, container: DesiredContainer | undefined): Promise<Outcome>;
  /** @param container the desired version; `undefined` if the container is to be removed */
  long(step: LongStep, source: LogSource, container: DesiredContainer | undefined): Promise<Outcome>;
  cancelPull(id: ContainerId): void;
}

export interface ExecutorParts {
  readonly engine: Engine;
  readonly owner: Owner;
  readonly pulls: Pick<Pulls, 'get' | 'leave'>;
  readonly logs: LogCollector;
  readonly firewall: Firewall;
  /** `undefined` if each container has a network namespace of its own. */
  readonly sandboxes: Pick<Sandboxes, 'claim' | 'prepare' | 'start'> | undefined;
  /** `undefined` if this host has none. */
  readonly tenantNetwork: Pick<TenantNetwork, 'attach' | 'mounts'> | undefined;
  readonly ensureNetwork: () => Promise<Network | undefined>;
  /** The size of an image's configuration; `undefined` if the file is not visible. */
  readonly configBytes: (imageId: string) => Promise<number | undefined>;
  readonly secretsDir: string | undefined;
  readonly values: Pick<Values, 'env'>;
  readonly secretFiles: Pick<SecretFiles, 'prepare'>;
  readonly declaredFiles: Pick<DeclaredFiles, 'prepare'>;
  readonly volumes: Pick<Volumes, 'mounts' | 'removeCopy'>;
  readonly publishAddress: string;
  readonly capabilities: readonly Capability[];
  /** The most that a container may write on this host, in bytes. */
  readonly diskBytes: number;
  readonly stopGraceMs: number;
  /** CPU of the engine's host, in thousandths of one. */
  readonly cpuMillis: () => number;
  /** The settings that the kernel there cannot enforce. `undefined` if it can enforce all. */
  readonly unkept?: () => LimitingHost['unkept'];
  readonly nowMs: () => number;
  readonly log: Log;
}

/** The properties of an image that its containers need. */
interface ImageUse {
  readonly labels: string[];
  readonly volumes: string[];
  readonly check: ImageCheck | null | undefined;
  /**
   * The digest in the repository of the reference; `undefined` if the image was not pulled from
   * there.
   */
  readonly digest: string | undefined;
}

const failed = (reason: Reason, message: string): Outcome => ({
  kind: 'failed',
  why: { reason, message, exitCode: null },
});
const taskLeft =
  'the engine was killed and has left a containerd-shim behind: docs/runbook.md, Shims that an engine left behind';
const imageGone = (reference: string): Outcome => {
  const message = `the image ${reference} was removed from this host`;
  return { kind: 'retry', why: { reason: 'create_failed', message, exitCode: null }, fault: 'image_gone' };
};
const secretMissing = (message: string): Outcome => ({
  kind: 'retry',
  why: { reason: 'secret_missing', message, exitCode: null },
  fault: 'container',
});
const missingFile = ({ path, why }: MissingFile): Outcome => {
  const message = `the file ${path} of the container is not on its host: ${why}`;
  return { kind: 'retry', why: { reason: 'create_failed', message, exitCode: null }, fault: 'container' };
};
const missing = ({ secret, why }: Missing): Outcome => secretMissing(`the secret "${secret}" is missing: ${why}`);
const readOnlyFiles =
  "process.read_only is true, and the operator's files can't be put into the container: set it to false, or ask the operator to remove the files";
const done: Outcome = { kind: 'done' };
const changed: Outcome = { kind: 'changed' };

export function createExecutor(parts: ExecutorParts): Executor {
  const { engine, owner, pulls, logs, firewall, sandboxes, tenantNetwork, ensureNetwork, log } = parts;
  const stops = createStops({
    workers: limits.concurrentStops,
    slowWorkers: limits.concurrentSlowStops,
    patienceMs: parts.stopGraceMs + limits.stepPatienceMs,
  });

  /**
   * The outcome if the operator requires a firewall and it is not in place; `undefined` to go on.
   */
  const unprotected = (): Outcome | undefined => {
    const message = firewall.refusal();
    if (message === undefined) return undefined;
    return { kind: 'retry', why: { reason: 'create_failed', message, exitCode: null }, fault: 'host' };
  };

  const create = async (
    { reference, imageId }: Extract<Step, { kind: 'create' }>,
    container: DesiredContainer,
  ): Promise<Outcome> => {
    const secrets = await resolveSecrets(parts.secretsDir, container.secret_refs);
    if (secrets.kind === 'missing')
      return secretMissing(`the secret "${secrets.secret}" is not on this host: ask the operator to add it`);
    const ofTenant = await parts.values.env(container);
    if (ofTenant.kind === 'missing') return missing(ofTenant);
    const files = await parts.secretFiles.prepare(container, specHash(container));
    if (files.kind === 'missing') return missing(files);
    const declared = await parts.declaredFiles.prepare(container, specHash(container));
    if (declared.kind === 'missing') return missingFile(declared);
    const image = await checkImage(imageId, reference);
    if (image === undefined) return imageGone(reference);
    if ('refused' in image) return failed('image_refused', image.refused);
    const network = await ensureNetwork();
    if (network !== undefined) await firewall.cover(network);
    const open = unprotected();
    if (open !== undefined) return open;
    if (container.process?.read_only === true && container.config_files.length > 0)
      return failed('create_failed', readOnlyFiles);
    const isTaken = new Set([
      ...[...files.mounts, ...declared.mounts].map(({ Target }) => Target),
      ...Object.keys(container.process?.tmpfs ?? {}),
    ]);
    const volumes = await parts.volumes.mounts(
      container,
      image.volumes.filter((path) => !isTaken.has(path)),
    );
    const inNetwork = container.network?.mode === 'none' ? undefined : tenantNetwork;
    const names = ((await inNetwork?.mounts()) ?? []).filter(({ Target }) => !isTaken.has(Target));
    const sandbox = (await sandboxes?.claim(container)) ?? null;
    // This runs while the engine makes the container; the start waits for it. During an update the
    // old copy keeps the network until then, in its own sandbox if that is another.
    if (sandbox !== null && container.desired === 'running' && container.update === undefined)
      inNetwork?.attach(container, sandbox).catch(() => undefined);
    const { publishAddress, capabilities } = parts;
    const hostCpuMillis = parts.cpuMillis();
    const { digest } = image;
    const createInput = {
      ...(digest === undefined ? {} : { resolved: { digest, resolved_at: timestamp(parts.nowMs()) } }),
      ...{ owner, container, reference, imageId, imageLabels: image.labels, imageCheck: image.check, sandbox },
      secrets: { ...ofTenant.env, ...secrets.env },
      mounts: [...files.mounts, ...declared.mounts, ...volumes, ...names],
      ...{ publishAddress, hostCpuMillis, capabilities },
    };
    const { bytes, isEnforced } = diskLimitOf(container, parts.diskBytes);
    const name = containerName(owner, container.id, container.update?.since);
    const result = await hiding(Object.values(createInput.secrets), () =>
      createWithQuota(isEnforced ? bytes : null, (diskBytes) =>
        engine.create(name, createBody({ ...createInput, diskBytes })),
      ),
    );
    switch (result.kind) {
      case 'created':
        return done;
      case 'no_image':
        return imageGone(reference);
      case 'name_taken':
        return nameTaken(name);
    }
  };

  /**
   * Few storage drivers keep quotas (overlay2 on xfs with pquota, btrfs, zfs), and none announces
   * it. If a create fails with a quota and works without one, the agent asks for no quota until it
   * restarts.
   */
  let hasQuotas = true;
  const createWithQuota = async (
    diskBytes: number | null,
    make: (diskBytes: number | null) => Promise<CreateResult>,
  ): Promise<CreateResult> => {
    if (!hasQuotas || diskBytes === null) return make(null);
    try {
      return await make(diskBytes);
    } catch (error) {
      if (!(error instanceof EngineError) || error.fault.kind !== 'refused') throw error;
      const result = await make(null);
      hasQuotas = false;
      return result;
    }
  };

  /** `undefined` if the image is gone. */
  const checkImage = async (id: string, reference: string): Promise<{ refused: string } | ImageUse | undefined> => {
    // Checked before the engine is asked, which reads all of it.
    const bytes = (await parts.configBytes(id)) ?? 0;
    if (bytes > limits.imageConfigBytes) return { refused: imageTooLarge };
    try {
      const details = await engine.imageDetails(id, reference);
      if (details === undefined) return undefined;
      const refused = imageFault(details);
      if (refused !== undefined) return { refused };
      const check = details.Config?.Healthcheck;
      const digest = digestFor(reference, details.RepoDigests ?? []);
      return { labels: labelNames(details), volumes: volumePaths(details), check, digest };
    } catch (error) {
      if (isOversized(error)) return { refused: imageTooLarge };
      throw error;
    }
  };

  /**
   * The name belongs to a container of this host, from a call whose answer was lost: the next
   * observation finds it. Or it belongs to a stranger (A4).
   */
  const nameTaken = async (name: string): Promise<Outcome> => {
    const marks = (await engine.inspect(name))?.Config.Labels;
    if (isOwnedBy(owner, marks)) return changed;
    const message = `another container on this host has the name ${name}: remove it, or ask the operator to`;
    return { kind: 'retry', why: { reason: 'create_failed', message, exitCode: null }, fault: 'container' };
  };

  const start = async (
    { dockerId, prepare }: Extract<Step, { kind: 'start' }>,
    container: DesiredContainer,
  ): Promise<Outcome> => {
    const open = unprotected();
    if (open !== undefined) return open;
    // They are gone after a reboot.
    const files = await parts.secretFiles.prepare(container, specHash(container));
    if (files.kind === 'missing') return missing(files);
    const declared = await parts.declaredFiles.prepare(container, specHash(container));
    if (declared.kind === 'missing') return missingFile(declared);
    if (prepare && container.config_files.length > 0) {
      await engine.upload(dockerId, await tarOf(container.config_files));
    }
    if (tenantNetwork !== undefined) {
      const sandbox = sandboxOf((await engine.inspect(dockerId))?.HostConfig?.NetworkMode);
      if (sandbox !== undefined) await tenantNetwork.attach(container, sandbox);
    }
    await engine.start(dockerId);
    return done;
  };

  const stop = ({ dockerId, manner }: Extract<Step, { kind: 'stop' }>): Promise<void> => {
    const { graceMs, signal } = manner ?? { graceMs: parts.stopGraceMs, signal: defaultPolicy.stop_signal };
    return signal === defaultPolicy.stop_signal
      ? engine.stop(dockerId, graceMs)
      : engine.stopBy(dockerId, signal, graceMs);
  };

  const limit = async (dockerId: string, container: DesiredContainer): Promise<Outcome> => {
    const cpuMillis = parts.cpuMillis();
    const wanted = settingsOf(container, { cpuMillis, unkept: parts.unkept?.() ?? [] });
    const others = async (): Promise<Partial<KeptSettings>> => {
      const seen = await engine.inspect(dockerId);
      return seen === undefined ? {} : otherLimits({ limits: limitsFrom(seen) }, wanted);
    };
    // An engine may refuse a setting that it has by default.
    await engine.update(dockerId, { ...limitsOf(container, cpuMillis), ...(await others()) });
    // An engine that accepts the settings and keeps others is asked ever more rarely.
    return Object.keys(await others()).length > 0 ? limitsKept() : done;
  };

  const startSandbox = async (dockerId: string): Promise<Outcome> => {
    // A container of an agent that ran with sandboxes: this one starts it as it is.
    await (sandboxes === undefined ? engine.start(dockerId) : sandboxes.start(dockerId));
    return done;
  };

  const startRefused = (error: Error): Outcome => {
    const detail = detailOf(error);
    if (isRefusal(error, 404) && /no such container/i.test(detail)) return changed;
    if (/cannot join network of a non running container/i.test(detail)) return changed;
    const outcome = startFailure(error);
    if (isTaskLeft(detail)) log.warn('engine_left_task', { detail, remedy: taskLeft });
    const needsAnother = isNetworkGone(detail) || isTaskLeft(detail);
    return outcome.kind === 'retry' && needsAnother ? { ...outcome, fault: 'remake' } : outcome;
  };

  const attempt = async (work: () => Promise<Outcome>, explain: (error: Error) => Outcome): Promise<Outcome> => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof EngineError || error instanceof RegistryError) return explain(error);
      throw error;
    }
  };

  return {
    short: (step, container) => {
      switch (step.kind) {
        case 'create':
          return attempt(
            () => (container === undefined ? Promise.resolve(changed) : create(step, container)),
            createFailure,
          );
        case 'start':
          return attempt(
            () => (container === undefined ? Promise.resolve(changed) : start(step, container)),
            startRefused,
          );
        case 'start_sandbox':
          return attempt(() => startSandbox(step.dockerId), startFailure);
        case 'unpause':
          return attempt(() => engine.unpause(step.dockerId).then(() => done), clearFailure);
        case 'limit':
          return attempt(
            () => (container === undefined ? Promise.resolve(changed) : limit(step.dockerId, container)),
            limitFailure,
          );
        case 'remove':
          return attempt(
            () => parts.volumes.removeCopy(step.dockerId, container === undefined).then(() => done),
            clearFailure,
          );
      }
    },

    long: (step, source, container) => {
      switch (step.kind) {
        case 'pull':
          if (container !== undefined) sandboxes?.prepare(container);
          return attempt(
            async () => ({ kind: 'done', imageId: await pulls.get(step.reference, step.policy, source) }),
            pullFailure,
          );
        case 'stop':
          return attempt(() => stops.run(step.dockerId, () => stop(step)).then(() => done), clearFailure);
        case 'drain':
          // Someone else removed the container, or is removing it: its log goes with it.
          return attempt(
            () => logs.drain(source, step.dockerId).then(() => done),
            (error) => (isRefusal(error, 404) || isRefusal(error, 409) ? changed : drainFailure(error)),
          );
      }
    },

    cancelPull: (id) => pulls.leave(id),
  };
}

/** The engine's refusal may repeat the environment; logs must not. */
async function hiding<T>(values: readonly string[], call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.call, error.fault, withoutSecrets(error.detail, values));
  }
}
