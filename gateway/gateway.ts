/** The gateway put together: everything but the process around it. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Registry } from 'prom-client';
import { v7 as uuidv7 } from 'uuid';
import type { Answers } from '../lib/nats/answers.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import type { ContainerId, OperationId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { routes, type RouteName } from '../schemas/routes.ts';
import { ClientAddresses } from './auth/client-address.ts';
import { Gate } from './auth/gate.ts';
import { IssuerKeys } from './auth/keys.ts';
import { Revocations } from './auth/revocations.ts';
import { UrlTokens } from './auth/url-tokens.ts';
import { Verifier } from './auth/verifier.ts';
import { Backend } from './backend/backend.ts';
import type { Handler, Services } from './http/call.ts';
import { Dispatcher } from './http/dispatch.ts';
import { createForage } from './vpn/vpn.ts';
import { artifactHandlers } from './vpn/downloads.ts';
import { containerHandlers } from './compute/handlers.ts';
import { hostHandlers } from './operator/hosts.ts';
import { networkHandlers } from './operator/networks.ts';
import { streamHandlers } from './streams/handlers.ts';
import { peerHandlers } from './vpn/peers.ts';
import { probesOf } from './compute/probes.ts';
import { publicHandlers } from './http/public.ts';
import { tenantHandlers } from './operator/tenants.ts';
import { createEngine } from './http/engine/choose.ts';
import type { HttpEngine } from './http/engine/engine.ts';
import { drain } from './http/engine/shutdown.ts';
import { createMeters, registerGauges } from './metrics.ts';
import { RateLimiter } from './auth/rate-limits.ts';
import { Seats } from './http/seats.ts';
import { defaultNetworkOf, publicUrlOf, redisAccessOf, trustedProxies, vaultKeysOf } from './configuration/settings.ts';
import type { GatewayConfiguration, IssuerSetting } from './configuration/settings.ts';
import { createBodyValidators } from './validation/bodies.ts';
import { EventReader } from './streams/events.ts';
import { StreamHost, type Polls } from './streams/host.ts';
import { LogReader } from './streams/logs.ts';

export interface GatewayDependencies {
  readonly configuration: GatewayConfiguration;
  readonly issuers: readonly IssuerSetting[];
  /** Pending while NATS is away. */
  readonly nats: Promise<NatsConnection>;
  /** Counts the answers on that connection. */
  readonly answers: Answers;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  /** NATS is now another cluster; the gateway must end. */
  readonly onOtherCluster: (error: Error) => void;
  /** Default: as `limits` says. */
  readonly polls?: Polls;
}

export interface Gateway {
  readonly url: string;
  readonly engine: HttpEngine['name'];
  /** Completes every accepted request. */
  stop(): Promise<void>;
}

/** Waits go on while other requests drain, and are answered shortly before the drain ends. */
const waitsGraceMs = limits.shutdownGraceMs - 2_000;

const publicSeats = (): Seats =>
  new Seats({ inAll: limits.publicRequestsInFlight, perClient: limits.publicRequestsPerClient, perTenant: 0 });

/** The longest that `stop` takes. */
export const stopDeadlineMs = (configuration: GatewayConfiguration): number =>
  configuration.SHUTDOWN_DELAY_MS + limits.shutdownGraceMs + 2_000;

/** Listens at once; ready when NATS, the cluster and all keys are there. */
export async function startGateway(dependencies: GatewayDependencies): Promise<Gateway> {
  const { configuration, nats, clock, log, registry } = dependencies;
  const meters = createMeters(registry);
  const redis = redisAccessOf(configuration);
  const rate = (perSecond: number, burst: number, shared: boolean) =>
    new RateLimiter({ perSecond, burst }, clock, { shared });
  const tenantRates = rate(
    configuration.RATE_LIMIT_TENANT_PER_SECOND,
    configuration.RATE_LIMIT_TENANT_BURST,
    redis !== undefined,
  );
  const failureRates = rate(
    configuration.RATE_LIMIT_AUTH_FAILURES_PER_SECOND,
    configuration.RATE_LIMIT_AUTH_FAILURES_BURST,
    false,
  );

  const issuers = dependencies.issuers.map((issuer) => ({
    ...issuer,
    keys: new IssuerKeys(issuer.issuer, issuer.source, { log, clock }),
  }));
  const revocations = new Revocations();
  const verifier = new Verifier(issuers, revocations, {
    clock,
    log,
    tokenLifeMaxMs: configuration.AUTH_TOKEN_LIFE_MAX_MS,
    counted: (result) => meters.token(result),
  });
  const backend = new Backend({
    redis,
    expectedId: configuration.CLUSTER_ID,
    requestDeadlineMs: configuration.REQUEST_DEADLINE_MS,
    revocations,
    tenantRates,
    clock,
    log,
    meters,
    answers: dependencies.answers,
    onOtherCluster: dependencies.onOtherCluster,
  });
  const clients = new ClientAddresses(trustedProxies(configuration.TRUSTED_PROXIES), { clock, log });
  const gate = new Gate({
    verifier,
    tenantRates,
    failureRates,
    publicRates: rate(configuration.RATE_LIMIT_PUBLIC_PER_SECOND, configuration.RATE_LIMIT_PUBLIC_BURST, false),
    clients,
    meters,
    knowledgeOf: (tenant) => backend.knowledgeOf(tenant),
  });

  let connection: NatsConnection | undefined;
  const streams = new StreamHost({
    places: new Seats({
      inAll: limits.streams,
      perClient: configuration.LIMIT_STREAMS_PER_ADDRESS,
      perTenant: limits.streamsPerTenant,
    }),
    clock,
    log,
    meters,
    stillGood: (identity) => verifier.stillGood(identity),
    polls: dependencies.polls ?? { streamMs: limits.streamPollMs, waitMs: limits.waitPollMs },
    listen: (subject, ring) => {
      const subscription = connection?.subscribe(subject, { callback: () => ring() });
      return () => subscription?.unsubscribe();
    },
  });
  let stopping = false;
  const ready = (): boolean => !stopping && backend.ready() && issuers.every(({ keys }) => keys.loaded());

  const services: Services = {
    ask: (kind, question, deadlineMs) => backend.ask(kind, question, deadlineMs),
    partitions: () => backend.partitions(),
    announceRevocation: (revocation) => backend.announceRevocation(revocation),
    tokenLifeMaxMs: configuration.AUTH_TOKEN_LIFE_MAX_MS,
    clock,
    log,
    streams,
    logs: new LogReader(nats, clock, () => meters.badLogBlock()),
    events: new EventReader(nats, clock, () => meters.badLogBlock()),
    newOperationId: () => randomUUID() as string as OperationId,
    newContainerId: () => uuidv7() as ContainerId,
    newSecret: () => randomBytes(32).toString('base64url'),
    countAuthFailure: (call, token) => gate.countFailure(call.exchange.head, token),
  };
  let listenUrl = '';
  const configuredUrl = publicUrlOf(configuration);
  const forage = createForage({
    services,
    vaultKeys: vaultKeysOf(configuration),
    publicUrl: () => configuredUrl ?? listenUrl,
    defaultNetwork: defaultNetworkOf(configuration),
    metricsToken: configuration.FORAGE_METRICS_TOKEN,
    version: dependencies.version,
  });
  const handlers: Record<RouteName, Handler> = {
    ...containerHandlers(services),
    ...streamHandlers(services),
    ...tenantHandlers(services),
    ...hostHandlers(services),
    ...peerHandlers(forage),
    ...artifactHandlers(forage),
    ...networkHandlers(forage),
    ...publicHandlers({ version: dependencies.version, ready }),
  };

  const dispatcher = new Dispatcher({
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
    meters,
    log,
    clock,
    requestDeadlineMs: configuration.REQUEST_DEADLINE_MS,
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
    ready,
  });

  const url = await engine.listen(configuration.HTTP_HOST, configuration.HTTP_PORT);
  listenUrl = url;
  log.info('listening', { url, engine: engine.name });
  for (const { keys } of issuers) void keys.start();
  nats
    .then((nc) => {
      connection = nc;
      return backend.start(nc);
    })
    .catch((error: unknown) => log.error('backend_failed', { error }));

  return {
    url,
    engine: engine.name,
    stop: async () => {
      stopping = true;
      // After the delay: until then this gateway listens, and an ended stream would reconnect to it.
      setTimeout(() => streams.endStreams(), configuration.SHUTDOWN_DELAY_MS);
      setTimeout(() => streams.endWaits(), configuration.SHUTDOWN_DELAY_MS + waitsGraceMs).unref();
      await drain(engine, clock, { delayMs: configuration.SHUTDOWN_DELAY_MS, graceMs: limits.shutdownGraceMs });
      backend.stop();
      await forage.stop();
      for (const { keys } of issuers) keys.stop();
    },
  };
}
