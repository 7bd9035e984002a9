/** Builds the gateway: everything but the process around it. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Registry } from 'prom-client';
import type { Answers } from '../lib/nats/answers.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import { PartitionClient, type AskOwner } from '../lib/rpc/partition-client.ts';
import type { Tracer } from '../lib/trace/tracer.ts';
import type { Revocation } from '../schemas/api/tenant.ts';
import type { ContainerId, KeyId, OperationId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { routes } from '../schemas/routes.ts';
import { auditRoutes } from './audit/routes.ts';
import { AuditNotes } from './audit/notes.ts';
import { AuditReader } from './audit/reader.ts';
import { createAccess, type Access } from './access.ts';
import type { Knowledge } from './auth/revocation-feed.ts';
import { UrlTokens } from './auth/url-tokens.ts';
import { Backend } from './backend/backend.ts';
import { containerRoutes } from './compute/routes.ts';
import { specRoutes } from './compute/spec.ts';
import { probesOf } from './pipeline/probes.ts';
import type { IssuerSetting } from './configuration/issuers.ts';
import { redisAccessOf } from './configuration/redis.ts';
import type { GatewayConfiguration } from './configuration/settings.ts';
import { vaultKeysOf } from './configuration/vault.ts';
import { linkFolderOf, sessionLifeOf, signInOf } from './configuration/sign-in.ts';
import { defaultNetworkOf, publicUrlOf } from './configuration/vpn.ts';
import type { Handlers } from './call.ts';
import { Dispatcher } from './pipeline/dispatch.ts';
import { createEngine } from './http/engine/choose.ts';
import type { HttpEngine } from './http/engine/engine.ts';
import { drain } from './http/engine/shutdown.ts';
import { publicRoutes } from './openapi/routes.ts';
import { Permits } from '../lib/permits.ts';
import { ascendingIds } from './ids.ts';
import { keyRoutes } from './keys/routes.ts';
import { SigningKeys, ownTokens } from './keys/signing-keys.ts';
import { createMeters, registerGauges, type Meters } from './metrics.ts';
import { operatorRoutes } from './operator/routes.ts';
import { secretRoutes } from './secrets/routes.ts';
import { hostIssuersOf } from './secrets/host-issuers.ts';
import { notServed, UnsealService } from './secrets/unseal.ts';
import { sessionRoutes } from './sessions/routes.ts';
import { Sessions } from './sessions/sessions.ts';
import { statsRoutes } from './stats/routes.ts';
import { signInRoutes } from './sign-in/routes.ts';
import { StatsWatches } from './stats/watches.ts';
import { AllEventReader } from './streams/all-events.ts';
import { EventReader } from './streams/events.ts';
import { streamRoutes } from './streams/routes.ts';
import { StreamHost, type Polls } from './streams/host.ts';
import { LogReader } from './streams/logs.ts';
import { UsageReader } from './stats/usage-reader.ts';
import { createBodyValidators } from './validation/bodies.ts';
import { vpnRoutes } from './vpn/routes.ts';
import { Vault } from './vault/vault.ts';
import { keyringOf } from './vpn/service/keyring.ts';
import { createForage, type Forage } from './vpn/vpn.ts';

/** Of these, the requests of one tenant. */
const requestsPerTenant = 2048;

export interface GatewayDependencies {
  readonly configuration: GatewayConfiguration;
  readonly issuers: readonly IssuerSetting[];
  /** Pending while NATS is away. */
  readonly nats: Promise<NatsConnection>;
  /** Counts the answers on that connection. */
  readonly answers: Answers;
  readonly registry: Registry;
  /** `undefined` if nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  /** The NATS servers now hold another cluster; the gateway must end. */
  readonly onOtherCluster: (error: Error) => void;
  /** Default: the values in `limits`. */
  readonly polls?: Polls;
}

export interface Gateway {
  readonly url: string;
  readonly engine: HttpEngine['name'];
  /** Completes every accepted request. */
  stop(): Promise<void>;
}

/** Waits continue while other requests drain, and are answered shortly before the drain ends. */
const waitsGraceMs = limits.shutdownGraceMs - 2_000;

/** The longest that `stop` takes. */
export const stopDeadlineMs = (configuration: GatewayConfiguration): number =>
  configuration.SHUTDOWN_DELAY + limits.shutdownGraceMs + limits.auditNoteMs + 2_000;

const newOperationId = (): OperationId => randomUUID() as string as OperationId;

/** The objects that the parts of one gateway share. */
interface Parts extends GatewayDependencies {
  readonly meters: Meters;
  readonly access: Access;
  readonly client: PartitionClient;
  readonly backend: Backend;
  readonly notes: AuditNotes;
}

/**
 * Starts a gateway. It listens at once, and is ready when NATS, the cluster and all keys are
 * available.
 */
export async function startGateway(dependencies: GatewayDependencies): Promise<Gateway> {
  const { configuration, nats, clock, log, registry } = dependencies;
  const meters = createMeters(registry);
  const vault = vaultOf(configuration);
  const client = new PartitionClient({
    requestDeadlineMs: configuration.REQUEST_DEADLINE,
    clock,
    log,
    meters,
    answers: dependencies.answers,
    tracer: dependencies.tracer,
    onOutcome: (question, outcome) => notes.heard(question, outcome),
  });
  const signingKeys = signingKeysOf(dependencies, vault, client.ask);
  const access = createAccess({
    ...dependencies,
    ownIssuer: { ...ownTokens, keys: signingKeys },
    meters,
    knowledgeOf: (tenant): Knowledge => backend.knowledgeOf(tenant),
  });
  const { revocations, tenantRates, clients, verifier } = access;
  const backend = new Backend({
    client,
    redis: redisAccessOf(configuration),
    expectedId: configuration.LONGSHORE_CLUSTER_ID,
    revocations,
    tenantRates,
    clock,
    log,
    answers: dependencies.answers,
    onOtherCluster: dependencies.onOtherCluster,
  });
  const notes = new AuditNotes({
    ask: client.ask,
    newOperationId,
    clock,
    log,
    onLost: () => meters.auditLineLost(),
  });
  const parts: Parts = { ...dependencies, meters, access, client, backend, notes };

  let connection: NatsConnection | undefined;
  let listenUrl = '';
  let stopping = false;
  const ready = (): boolean => !stopping && backend.ready() && access.keysLoaded();
  const streams = streamHostOf(parts, () => connection);
  const sessions = new Sessions({ clock, log, stillGood: (identity) => verifier.stillGood(identity) });
  const forage = forageOf(parts, { vault, listenUrl: () => listenUrl });
  const unseal = unsealOf(parts, vault, forage);
  const handlers = handlersOf(parts, { streams, sessions, vault, signingKeys, forage }, ready);
  const dispatcher = dispatcherOf(parts, { forage, vault }, handlers);
  const engine = await createEngine(configuration.HTTP_ENGINE, dispatcher.dispatch, {
    log,
    clock,
    connections: limits.connections,
    isTrusted: clients.isTrusted,
  });
  registerGauges(registry, {
    queued: (kind) => client.queued(kind),
    tokenCacheEntries: () => verifier.cacheEntries(),
    revocations: () => revocations.count(),
    tenantsRefused: () => backend.tenantsRefused(),
    inFlight: () => engine.inFlight(),
    tunnels: () => sessions.count,
    ready,
  });

  listenUrl = await engine.listen(configuration.HTTP_HOST, configuration.HTTP_PORT);
  log.info('listening', { url: listenUrl, engine: engine.name });
  access.startKeys();
  nats
    .then((nc) => {
      connection = nc;
      sessions.serve(nc);
      return Promise.all([backend.start(nc).then(() => signingKeys.start()), unseal?.start(nc)]);
    })
    .catch((error: unknown) => log.error('backend_failed', { error }));

  return {
    url: listenUrl,
    engine: engine.name,
    stop: async () => {
      stopping = true;
      // After the delay: until then this gateway listens, and an ended stream would reconnect to
      // it.
      setTimeout(() => {
        streams.endStreams();
        sessions.stop();
      }, configuration.SHUTDOWN_DELAY);
      setTimeout(() => streams.endWaits(), configuration.SHUTDOWN_DELAY + waitsGraceMs).unref();
      await drain(engine, clock, { delayMs: configuration.SHUTDOWN_DELAY, graceMs: limits.shutdownGraceMs });
      await unseal?.stop();
      signingKeys.stop();
      await notes.drain(limits.auditNoteMs);
      backend.stop();
      await forage.stop();
      access.stopKeys();
    },
  };
}

function streamHostOf(
  { configuration, access, clock, log, meters, polls }: Parts,
  connection: () => NatsConnection | undefined,
): StreamHost {
  return new StreamHost({
    permits: new Permits({
      inAll: limits.streams,
      perClient: configuration.LIMIT_STREAMS_PER_ADDRESS,
      perTenant: limits.streamsPerTenant,
    }),
    clock,
    log,
    meters,
    stillGood: (identity) => access.verifier.stillGood(identity),
    polls: polls ?? { streamMs: limits.streamPollMs, waitMs: limits.waitPollMs },
    listen: (subject, ring) => {
      const subscription = connection()?.subscribe(subject, { callback: () => ring() });
      return () => subscription?.unsubscribe();
    },
  });
}

/** Undefined without keys: what needs them is answered 503. */
function vaultOf(configuration: GatewayConfiguration): Vault | undefined {
  const keys = vaultKeysOf(configuration);
  return keys.length === 0 ? undefined : new Vault(keys);
}

function signingKeysOf(
  { configuration, clock, log }: GatewayDependencies,
  vault: Vault | undefined,
  ask: AskOwner,
): SigningKeys {
  return new SigningKeys({
    vault,
    ask,
    tokenLifeMaxMs: configuration.AUTH_TOKEN_LIFE_MAX,
    newKeyId: ascendingIds(clock),
    newOperationId,
    clock,
    log,
  });
}

/** @throws ConfigurationError */
function unsealOf(
  { configuration, client, clock, log, meters }: Parts,
  vault: Vault | undefined,
  { networks, keyring }: Pick<Forage, 'networks' | 'keyring'>,
): UnsealService | undefined {
  const { HOSTS_ACCOUNT_FILE: path } = configuration;
  const issuers = path === undefined ? undefined : hostIssuersOf(path, clock, log);
  if (vault === undefined) return undefined;
  if (issuers === undefined) {
    notServed(log, { why: 'HOSTS_ACCOUNT_FILE is not set', todo: 'set it to the hosts.jwt that nats-keys writes' });
    return undefined;
  }
  return new UnsealService({
    vault,
    issuers,
    ask: client.ask,
    renew: async (network, rid, deadlineMs) =>
      networks.fresh({ origin: { rid }, deadlineMs }, network, keyringOf(keyring)),
    newRequestId: randomUUID,
    clock,
    log,
    count: (result) => meters.unseal(result),
  });
}

/** Parts that several areas of the API share. */
interface Rooms {
  readonly streams: StreamHost;
  readonly sessions: Sessions;
  readonly vault: Vault | undefined;
  readonly signingKeys: SigningKeys;
  readonly forage: Forage;
}

/** Counts a wrong token of a route that checks its token itself. */
const authFailuresOf =
  ({ access }: Parts): Forage['countAuthFailure'] =>
  (call, token) =>
    access.gate.countFailure(call.exchange.head, token);

function forageOf(
  parts: Parts,
  { vault, listenUrl }: Pick<Rooms, 'vault'> & { readonly listenUrl: () => string },
): Forage {
  const { configuration, client, backend, clock, log, version } = parts;
  const publicUrl = publicUrlOf(configuration);
  return createForage({
    ask: client.ask,
    partitions: () => backend.partitions(),
    tenantRanges: () => backend.tenantRanges(),
    newOperationId,
    countAuthFailure: authFailuresOf(parts),
    clock,
    log,
    vault,
    publicUrl: () => publicUrl ?? listenUrl(),
    defaultNetwork: defaultNetworkOf(configuration),
    metricsToken: configuration.FORAGE_METRICS_TOKEN,
    version,
  });
}

/** The handlers of all routes, each area's with what they use. @throws ConfigurationError */
function handlersOf(parts: Parts, rooms: Rooms, ready: () => boolean): Handlers {
  const { configuration, access, client, backend, notes, nats, clock, log, meters, version } = parts;
  const { streams, sessions, vault, signingKeys, forage } = rooms;
  const newId = ascendingIds(clock);
  const badBlock = (): void => meters.badLogBlock();
  const { ask } = client;
  const writes = { ask, newOperationId };
  const reads = { ask, clock, log };
  const usage = new UsageReader(nats, badBlock);
  const revokes = {
    ...writes,
    announceRevocation: (revocation: Revocation) => backend.announceRevocation(revocation),
    tokenLifeMaxMs: configuration.AUTH_TOKEN_LIFE_MAX,
    clock,
  };
  return {
    ...containerRoutes({ ...writes, newContainerId: () => newId() as ContainerId }),
    ...specRoutes({ ...writes, newContainerId: () => newId() as ContainerId }),
    ...secretRoutes({ ...writes, vault, log }),
    ...keyRoutes({ ...revokes, signingKeys, newKeyId: () => newId() as KeyId }),
    ...signInRoutes({
      ...revokes,
      signingKeys,
      vault,
      gate: access.gate,
      verifier: access.verifier,
      notes,
      log,
      settings: signInOf(configuration),
      publicUrl: publicUrlOf(configuration),
      lifeMs: sessionLifeOf(configuration),
      linkFolder: linkFolderOf(configuration),
    }),
    ...auditRoutes({ ...reads, audit: new AuditReader(nats, clock, badBlock) }),
    ...streamRoutes({
      ...reads,
      streams,
      logs: new LogReader(nats, clock, badBlock),
      events: new EventReader(nats, clock, badBlock),
    }),
    ...sessionRoutes({ ...reads, sessions, notes }),
    ...statsRoutes({
      ...reads,
      streams,
      stats: new StatsWatches(sessions, clock),
      usage,
    }),
    ...operatorRoutes({
      ...revokes,
      ...reads,
      streams,
      usage,
      allEvents: new AllEventReader(nats, clock, badBlock),
      partitions: () => backend.partitions(),
      newSecret: () => randomBytes(32).toString('base64url'),
      countAuthFailure: authFailuresOf(parts),
      forage,
    }),
    ...vpnRoutes(forage),
    ...publicRoutes({ version, ready }),
  };
}

function dispatcherOf(
  { configuration, access, client, backend, notes, tracer, clock, log, meters }: Parts,
  { forage, vault }: Pick<Rooms, 'forage' | 'vault'>,
  handlers: Handlers,
): Dispatcher {
  const { gate } = access;
  const publicPermits = () =>
    new Permits({ inAll: limits.publicRequestsInFlight, perClient: limits.publicRequestsPerClient });
  return new Dispatcher({
    routes,
    handlers,
    probes: probesOf({ ask: client.ask }),
    validators: createBodyValidators(clock),
    gate,
    urlTokens: new UrlTokens({
      gate,
      ask: (question, deadlineMs) => client.ask('read', question, deadlineMs),
      partitions: () => backend.partitions(),
      counted: (route, reason) => forage.meters.authFailure(route.replace('artifact.', ''), reason),
    }),
    notes,
    once: { ask: client.ask, vault },
    meters,
    log,
    tracer,
    clock,
    requestDeadlineMs: configuration.REQUEST_DEADLINE,
    requestIdPrefix: randomBytes(6).toString('hex'),
    permits: new Permits({
      inAll: limits.requestsInFlight,
      perClient: configuration.LIMIT_REQUESTS_PER_ADDRESS,
      perTenant: requestsPerTenant,
    }),
    publicPermits: publicPermits(),
    enrolPermits: publicPermits(),
    accessLog: configuration.LOG_LEVEL === 'debug' || configuration.LOG_LEVEL === 'info',
  });
}
