/** Builds the gateway: everything but the process around it. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Registry } from 'prom-client';
import type { Answers } from '../lib/nats/answers.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Tracer } from '../lib/trace/tracer.ts';
import type { ContainerId, KeyId, OperationId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { routes } from '../schemas/routes.ts';
import { auditHandlers } from './audit/handlers.ts';
import { AuditNotes } from './audit/notes.ts';
import { AuditReader } from './audit/reader.ts';
import { createAccess, type Access } from './auth/access.ts';
import type { Knowledge } from './auth/revocation-feed.ts';
import { UrlTokens } from './auth/url-tokens.ts';
import { Backend } from './backend/backend.ts';
import { containerHandlers } from './compute/handlers.ts';
import { usageHandlers } from './compute/usage.ts';
import { probesOf } from './compute/probes.ts';
import type { IssuerSetting } from './configuration/issuers.ts';
import { redisAccessOf } from './configuration/redis.ts';
import type { GatewayConfiguration } from './configuration/settings.ts';
import { vaultKeysOf } from './configuration/vault.ts';
import { linkFolderOf, sessionLifeOf, signInOf } from './configuration/sign-in.ts';
import { defaultNetworkOf, publicUrlOf } from './configuration/vpn.ts';
import type { Handlers, Services } from './http/call.ts';
import { Dispatcher } from './http/dispatch.ts';
import { createEngine } from './http/engine/choose.ts';
import type { HttpEngine } from './http/engine/engine.ts';
import { drain } from './http/engine/shutdown.ts';
import { publicHandlers } from './http/public.ts';
import { Seats } from './http/seats.ts';
import { ascendingIds } from './ids.ts';
import { keyHandlers } from './keys/handlers.ts';
import { SigningKeys, ownTokens } from './keys/signing-keys.ts';
import { createMeters, registerGauges, type Meters } from './metrics.ts';
import { hostHandlers } from './operator/hosts.ts';
import { networkHandlers } from './operator/networks.ts';
import { tenantHandlers } from './operator/tenants.ts';
import { secretHandlers } from './secrets/handlers.ts';
import { hostIssuersOf } from './secrets/host-issuers.ts';
import { notServed, UnsealService } from './secrets/unseal.ts';
import { sessionHandlers } from './sessions/handlers.ts';
import { Sessions } from './sessions/sessions.ts';
import { statsHandler } from './stats/handler.ts';
import { signInHandlers, type SignInOptions } from './sign-in/handlers.ts';
import { StatsWatches } from './stats/watches.ts';
import { EventReader } from './streams/events.ts';
import { streamHandlers } from './streams/handlers.ts';
import { StreamHost, type Polls } from './streams/host.ts';
import { LogReader } from './streams/logs.ts';
import { UsageReader } from './streams/usage.ts';
import { createBodyValidators } from './validation/bodies.ts';
import { artifactHandlers } from './vpn/downloads.ts';
import { peerHandlers } from './vpn/peers.ts';
import { Vault } from './vault/vault.ts';
import { createForage, type Forage } from './vpn/vpn.ts';

export interface GatewayDependencies {
  readonly configuration: GatewayConfiguration;
  readonly issuers: readonly IssuerSetting[];
  /** Pending while NATS is away. */
  readonly nats: Promise<NatsConnection>;
  /** Counts the answers on that connection. */
  readonly answers: Answers;
  readonly registry: Registry;
  /** Undefined: nothing is traced. */
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
  const signingKeys = signingKeysOf(dependencies, vault, (kind, question, deadlineMs) =>
    notes.ask(kind, question, deadlineMs),
  );
  const access = createAccess({
    ...dependencies,
    ownIssuer: { ...ownTokens, keys: signingKeys },
    meters,
    knowledgeOf: (tenant): Knowledge => backend.knowledgeOf(tenant),
  });
  const { revocations, tenantRates, clients, verifier } = access;
  const backend = new Backend({
    redis: redisAccessOf(configuration),
    expectedId: configuration.CLUSTER_ID,
    requestDeadlineMs: configuration.REQUEST_DEADLINE,
    revocations,
    tenantRates,
    tracer: dependencies.tracer,
    clock,
    log,
    meters,
    answers: dependencies.answers,
    onOtherCluster: dependencies.onOtherCluster,
  });
  const notes = new AuditNotes({
    ask: (kind, question, deadlineMs) => backend.ask(kind, question, deadlineMs),
    newOperationId,
    clock,
    log,
    onLost: () => meters.auditLineLost(),
  });
  const parts: Parts = { ...dependencies, meters, access, backend, notes };

  let connection: NatsConnection | undefined;
  let listenUrl = '';
  let stopping = false;
  const ready = (): boolean => !stopping && backend.ready() && access.keysLoaded();
  const streams = streamHostOf(parts, () => connection);
  const sessions = new Sessions({ clock, log, stillGood: (identity) => verifier.stillGood(identity) });
  const services = servicesOf(parts, streams, sessions);
  const forage = forageOf(parts, { services, vault, listenUrl: () => listenUrl });
  const unseal = unsealOf(parts, vault);
  const signIn = signInOptionsOf(parts, { services, vault, signingKeys });
  const handlers = handlersOf(
    { services, forage, vault, signingKeys, signIn },
    { version: dependencies.version, ready },
  );
  const dispatcher = dispatcherOf(parts, services, forage, handlers);
  const engine = await createEngine(configuration.HTTP_ENGINE, dispatcher.dispatch, {
    log,
    clock,
    connections: limits.connections,
    isTrusted: clients.isTrusted,
  });
  registerGauges(registry, {
    queued: (kind) => backend.queued(kind),
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
    places: new Seats({
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

function servicesOf(
  { configuration, access, backend, notes, nats, clock, log, meters }: Parts,
  streams: StreamHost,
  sessions: Sessions,
) {
  const newId = ascendingIds(clock);
  const services: Services = {
    ask: (kind, question, deadlineMs) => notes.ask(kind, question, deadlineMs),
    partitions: () => backend.partitions(),
    announceRevocation: (revocation) => backend.announceRevocation(revocation),
    tokenLifeMaxMs: configuration.AUTH_TOKEN_LIFE_MAX,
    clock,
    log,
    streams,
    sessions,
    logs: new LogReader(nats, clock, () => meters.badLogBlock()),
    events: new EventReader(nats, clock, () => meters.badLogBlock()),
    stats: new StatsWatches(sessions, clock),
    usage: new UsageReader(nats, () => meters.badLogBlock()),
    audit: new AuditReader(nats, clock, () => meters.badLogBlock()),
    notes,
    newOperationId,
    newContainerId: () => newId() as ContainerId,
    newKeyId: () => newId() as KeyId,
    newSecret: () => randomBytes(32).toString('base64url'),
    countAuthFailure: (call, token) => access.gate.countFailure(call.exchange.head, token),
  };
  return services;
}

/** Undefined without keys: what needs them is answered 503. */
function vaultOf(configuration: GatewayConfiguration): Vault | undefined {
  const keys = vaultKeysOf(configuration);
  return keys.length === 0 ? undefined : new Vault(keys);
}

function signingKeysOf(
  { configuration, clock, log }: GatewayDependencies,
  vault: Vault | undefined,
  ask: Services['ask'],
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
  { configuration, backend, clock, log, meters }: Parts,
  vault: Vault | undefined,
): UnsealService | undefined {
  const { HOSTS_ACCOUNT_FILE: path } = configuration;
  const issuers = path === undefined ? undefined : hostIssuersOf(path, clock, log);
  if (vault === undefined) return undefined;
  if (issuers === undefined) {
    notServed(log, { reason: 'HOSTS_ACCOUNT_FILE is not set', todo: 'set it to the hosts.jwt that nats-keys writes' });
    return undefined;
  }
  return new UnsealService({
    vault,
    issuers,
    ask: (kind, question, deadlineMs) => backend.ask(kind, question, deadlineMs),
    newRequestId: randomUUID,
    clock,
    log,
    count: (result) => meters.unseal(result),
  });
}

/** What handlers share. */
interface Rooms {
  readonly services: Services;
  readonly forage: Forage;
  readonly vault: Vault | undefined;
  readonly signingKeys: SigningKeys;
  readonly signIn: SignInOptions;
}

/** @throws ConfigurationError */
const signInOptionsOf = (
  { configuration, access }: Parts,
  rooms: Pick<Rooms, 'services' | 'vault' | 'signingKeys'>,
): SignInOptions => ({
  ...rooms,
  gate: access.gate,
  verifier: access.verifier,
  settings: signInOf(configuration),
  publicUrl: publicUrlOf(configuration),
  lifeMs: sessionLifeOf(configuration),
  linkFolder: linkFolderOf(configuration),
});

function forageOf(
  { configuration, version }: Parts,
  { services, vault, listenUrl }: Pick<Rooms, 'services' | 'vault'> & { readonly listenUrl: () => string },
): Forage {
  const publicUrl = publicUrlOf(configuration);
  return createForage({
    services,
    vault,
    publicUrl: () => publicUrl ?? listenUrl(),
    defaultNetwork: defaultNetworkOf(configuration),
    metricsToken: configuration.FORAGE_METRICS_TOKEN,
    version,
  });
}

const handlersOf = (
  { services, forage, vault, signingKeys, signIn }: Rooms,
  about: Parameters<typeof publicHandlers>[0],
): Handlers => ({
  ...containerHandlers(services),
  ...secretHandlers(services, vault),
  ...keyHandlers(services, signingKeys),
  ...signInHandlers(signIn),
  ...usageHandlers(services),
  ...auditHandlers(services),
  ...streamHandlers(services),
  ...sessionHandlers(services),
  'container.stats': statsHandler(services),
  ...tenantHandlers(services),
  ...hostHandlers(services),
  ...peerHandlers(forage),
  ...artifactHandlers(forage),
  ...networkHandlers(forage),
  ...publicHandlers(about),
});

function dispatcherOf(
  { configuration, access, backend, notes, tracer, clock, log, meters }: Parts,
  services: Services,
  forage: Forage,
  handlers: Handlers,
): Dispatcher {
  const { gate } = access;
  const publicSeats = () =>
    new Seats({ inAll: limits.publicRequestsInFlight, perClient: limits.publicRequestsPerClient, perTenant: 0 });
  return new Dispatcher({
    routes,
    handlers,
    probes: probesOf(services),
    validators: createBodyValidators(clock),
    gate,
    urlTokens: new UrlTokens({
      gate,
      ask: (question, deadlineMs) => backend.ask('read', question, deadlineMs),
      partitions: () => backend.partitions(),
      counted: (route, reason) => forage.meters.authFailure(route.replace('artifact.', ''), reason),
    }),
    notes,
    meters,
    log,
    tracer,
    clock,
    requestDeadlineMs: configuration.REQUEST_DEADLINE,
    requestIdPrefix: randomBytes(6).toString('hex'),
    seats: new Seats({
      inAll: limits.requestsInFlight,
      perClient: configuration.LIMIT_REQUESTS_PER_ADDRESS,
      perTenant: limits.requestsPerTenant,
    }),
    publicSeats: publicSeats(),
    enrolSeats: publicSeats(),
    accessLog: configuration.LOG_LEVEL === 'debug' || configuration.LOG_LEVEL === 'info',
  });
}
