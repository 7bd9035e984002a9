/**
 * The host-agent: runs on every host, and brings its containers to what the control plane
 * desires.
 */
import { mkdirSync } from 'node:fs';
import { systemClock } from '../lib/time/clock.ts';
import { ConfigurationError, readSettings } from '../lib/config.ts';
import { runProgram, type Lifecycle, type Stoppable } from '../lib/lifecycle.ts';
import { createLog, logLevelOf, type Log } from '../lib/log.ts';
import { createRegistry, metricsListenerOf, serveMetrics } from '../lib/metrics.ts';
import { version } from '../lib/version.ts';
import { startAgent } from './agent.ts';
import {
  enrol,
  EnrolmentRefused,
  keyFrom,
  lifetimeOf,
  loadIdentity,
  loadSeed,
  newest,
  type StoredIdentity,
} from './control-plane/identity/identity.ts';
import { AlreadyRunning, lockHost, lockStateDir } from './lock.ts';
import { checkSettings, joinTokenOf, settings, type AgentSettings } from './settings.ts';
import { limits } from '../schemas/limits.ts';

const log = createLog('host-agent', logLevelOf(process.env));

await runProgram(log, async (life) => {
  const given = checkSettings(readSettings(settings, process.env));
  await writtenOrRefused(given.STATE_DIR, () => mkdirSync(given.STATE_DIR, { recursive: true, mode: 0o700 }));
  life.onStop(await lockOrRefuse(lockStateDir(given.STATE_DIR)));

  const registry = createRegistry('host-agent', version);
  const listener = await serveMetrics(registry, metricsListenerOf(given), log);
  life.onStop(listener);
  log.info('metrics', { url: listener.url });

  const seed = await writtenOrRefused(given.STATE_DIR, () => loadSeed(given.STATE_DIR));
  const identity = await identify(given, keyFrom(seed).getPublicKey(), life, log);
  life.onStop(await lockOrRefuse(lockHost(identity)));
  const agentLog = log.child({ host: identity.host });
  await startAgent({ settings: given, identity, seed, registry, clock: systemClock, log: agentLog, life });
});

async function lockOrRefuse(locking: Promise<Stoppable>): Promise<Stoppable> {
  try {
    return await locking;
  } catch (error) {
    if (error instanceof AlreadyRunning) throw new ConfigurationError([`STATE_DIR: ${error.message}`]);
    throw error;
  }
}

/**
 * At the first start the host's key must be on disk: the join token works once, for this key. An
 * agent without its key needs a new token to come back; until then nothing stops its containers.
 */
async function writtenOrRefused<T>(stateDir: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError([
      `STATE_DIR: the host's key cannot be kept in ${stateDir} (${why}): free space on its disk or make it writable, ` +
        'and start the agent again; the join token has not been used',
    ]);
  }
}

/**
 * Reads the identity from disk. Enrols at the first start, and again where the credentials have
 * expired and a new token is set.
 */
async function identify(given: AgentSettings, publicKey: string, life: Lifecycle, log: Log): Promise<StoredIdentity> {
  const known = await loadIdentity(given.STATE_DIR, log);
  const hasExpired = known !== undefined && (lifetimeOf(newest(known).jwt)?.untilMs ?? Infinity) <= systemClock.nowMs();
  if (known !== undefined && !hasExpired) return known;
  const joinToken = joinTokenOf(given);
  if (joinToken === undefined) {
    if (known !== undefined) return known;
    throw new ConfigurationError(['LONGSHORE_JOIN_TOKEN or LONGSHORE_JOIN_TOKEN_FILE is required for the first start']);
  }
  const ending = new AbortController();
  life.onStop({ name: 'enrolment', deadlineMs: limits.stopPartMs, stop: () => Promise.resolve(ending.abort()) });
  try {
    return await enrol(
      {
        gatewayUrl: given.LONGSHORE_URL,
        joinToken,
        publicKey,
        backoff: { minMs: given.RETRY_MIN_MS, maxMs: given.RETRY_MAX_MS },
      },
      log,
      ending.signal,
    );
  } catch (error) {
    if (error instanceof EnrolmentRefused) throw new ConfigurationError([`LONGSHORE_JOIN_TOKEN: ${error.message}`]);
    throw error;
  }
}
