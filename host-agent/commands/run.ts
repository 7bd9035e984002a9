/** Runs the agent: takes its state folder, enrols where the host is not enrolled yet, and works. */
import { ConfigurationError, readSettings } from '../../lib/config.ts';
import type { Lifecycle } from '../../lib/lifecycle.ts';
import type { Log } from '../../lib/log.ts';
import { createRegistry, metricsListenerOf, serveMetrics } from '../../lib/metrics.ts';
import { startTracing } from '../../lib/trace/settings.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { version } from '../../lib/version.ts';
import { limits } from '../../schemas/limits.ts';
import { startAgent } from '../agent.ts';
import {
  enrol,
  EnrolmentRefused,
  keyFrom,
  loadIdentity,
  loadSeed,
  hasExpired,
  identityPath,
  isTooOld,
  type Identity,
} from '../link/identity/identity.ts';
import { lockHost } from '../lock.ts';
import { checkSettings, joinTokenOf, settings, type AgentSettings } from '../settings.ts';
import { lockOrRefuse, takeStateFolder, writtenOrRefused } from './state-folder.ts';

/** Samples of the event loop's delay: every 10 ms they take 0.004 cores, so often 0.0007. */
const agentLoopTickMs = 100;

export async function runAgent(env: NodeJS.ProcessEnv, clock: Clock, life: Lifecycle, log: Log): Promise<void> {
  const given = checkSettings(readSettings(settings, env));
  life.onStop(await takeStateFolder(given.STATE_DIR));

  const registry = createRegistry('host-agent', version, agentLoopTickMs);
  const listener = await serveMetrics(registry, metricsListenerOf(given), log);
  life.onStop(listener);
  log.info('metrics_listening', { url: listener.url });

  const seed = await writtenOrRefused(given.STATE_DIR, () => loadSeed(given.STATE_DIR));
  const identity = await identify(given, keyFrom(seed).getPublicKey(), clock, life, log);
  life.onStop(await lockOrRefuse(lockHost(identity)));
  const agentLog = log.child({ host: identity.host });
  const tracer = startTracing(given, { program: 'host-agent', version, registry, clock, log, life });
  await startAgent({ settings: given, identity, seed, registry, tracer, clock, log: agentLog, life });
}

/**
 * Reads the identity from disk. Enrols at the first start, and again where the credentials have
 * expired and a new token is set; without one, the agent renews them with its key.
 */
async function identify(
  given: AgentSettings,
  publicKey: string,
  clock: Clock,
  life: Lifecycle,
  log: Log,
): Promise<Identity> {
  const known = await loadIdentity(given.STATE_DIR, log);
  if (known !== undefined && isTooOld(known)) {
    throw new ConfigurationError([
      `${identityPath(given.STATE_DIR)} has credentials of release 0.1.0 or an older one, which no actors process accepts: ` +
        'enrol this host again with a new join token (host-agent join --token-file FILE)',
    ]);
  }
  if (known !== undefined && !hasExpired(known, clock.nowMs())) return known;
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
        backoff: { minMs: given.RETRY_MIN, maxMs: given.RETRY_MAX },
      },
      log,
      ending.signal,
    );
  } catch (error) {
    if (error instanceof EnrolmentRefused && known !== undefined) {
      // As a rule its token is the one that it has joined with. Its key may still get credentials.
      log.warn('join_token_refused', { reason: error.message });
      return known;
    }
    if (error instanceof EnrolmentRefused) throw new ConfigurationError([`LONGSHORE_JOIN_TOKEN: ${error.message}`]);
    throw error;
  }
}
