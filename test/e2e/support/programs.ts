/** Lets a test start, stop and kill Longshore's programs. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { repositoryRoot } from '../../../dev/paths.ts';
import { freePort, type Server } from '../../../dev/process/process.ts';
import { startProgram, type ServingName } from '../../../dev/stack/programs.ts';
import type { NatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { startNats } from '../../../dev/servers/nats.ts';
import { devAudience, devIssuer, prepareTokenIssuer } from '../../../dev/tokens.ts';
import type { Lifetime } from '../../support/runner/lifetime.ts';
import type { Issuer } from './client.ts';

/** A program that can be killed and started again with the same settings. */
export interface Running {
  server(): Server;
  kill9(): Promise<void>;
  stop(): Promise<void>;
  /** @param compiled folder of the programs to start from now on, such as another release's */
  start(compiled?: string): Promise<void>;
}

/** Folder of the compiled programs of this repository. */
export const thisRelease = join(repositoryRoot, 'dist');

/** Folders of a program: for its log, and of the compiled programs to start it from. */
export interface Place {
  readonly folder: string;
  /** Default: `thisRelease`. */
  readonly compiled?: string;
}

/** The addresses of the NATS servers, and the credentials for them. */
export type NatsAccess = Pick<
  NatsCluster,
  | 'urls'
  | 'credsFile'
  | 'gatewayCredsFile'
  | 'hostsAccountFile'
  | 'actorsCredsFile'
  | 'hostsAccount'
  | 'hostsSigningSeedFile'
  | 'sysCredsFile'
  | 'operatorSigningSeedFile'
> &
  Partial<Pick<NatsCluster, 'caFile'>>;

/** Connects as the user with all rights in the account CP. */
export const connectTo = async (nats: NatsAccess): Promise<NatsConnection> =>
  connect({
    servers: [...nats.urls],
    authenticator: credsAuthenticator(readFileSync(nats.credsFile)),
    ...(nats.caFile === undefined ? {} : { tls: { caFile: nats.caFile, handshakeFirst: true } }),
  });

export interface ProgramSettings {
  readonly actors: Record<string, string>;
  readonly gateway: Record<string, string>;
}

/** A started program and the URL of its metrics. */
export interface Started {
  readonly program: Running;
  readonly metricsUrl: string;
}

export const urlOf = (port: number, path: string): string => `http://127.0.0.1:${port}${path}`;

export const caOf = ({ caFile }: NatsAccess): Record<string, string> =>
  caFile === undefined ? {} : { NATS_CA_FILE: caFile };

export async function startRunning(
  t: Lifetime,
  name: ServingName,
  settings: Record<string, string>,
  readyUrl: string,
  { folder, compiled: first = thisRelease }: Place,
): Promise<Running> {
  let compiled = first;
  const launch = async (): Promise<Server> =>
    startProgram({ name, settings, readyUrl, logFile: join(folder, `${name}.log`), compiled }, process.env);
  let server = await launch();
  t.teardown(async () => {
    if (server.exit() === undefined) await server.stop();
  });
  return {
    server: () => server,
    kill9: async () => void (await server.kill9()),
    stop: async () => void (await server.stop()),
    start: async (next = compiled) => {
      compiled = next;
      server = await launch();
    },
  };
}

/** An actors process. `readyPath`: what answers 200 once it is as far as the test needs it. */
export async function startActors(
  t: Lifetime,
  place: Place,
  nats: NatsAccess,
  settings: Record<string, string>,
  readyPath: '/readyz' | '/healthz' = '/readyz',
): Promise<Started> {
  const port = await freePort();
  const program = await startRunning(
    t,
    'actors',
    {
      NATS_URLS: nats.urls.join(','),
      NATS_CREDS_FILE: nats.actorsCredsFile,
      ...caOf(nats),
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      NATS_SYSTEM_CREDS_FILE: nats.sysCredsFile,
      OPERATOR_SIGNING_SEED_FILE: nats.operatorSigningSeedFile,
      METRICS_PORT: String(port),
      ...settings,
    },
    urlOf(port, readyPath),
    place,
  );
  return { program, metricsUrl: urlOf(port, '/metrics') };
}

async function startGateway(
  t: Lifetime,
  place: Place,
  nats: NatsAccess,
  issuer: Issuer,
  settings: Record<string, string>,
): Promise<Started & { readonly baseUrl: string }> {
  const [api, metrics] = [await freePort(), await freePort()];
  const program = await startRunning(
    t,
    'gateway',
    {
      NATS_URLS: nats.urls.join(','),
      NATS_CREDS_FILE: nats.gatewayCredsFile,
      HOSTS_ACCOUNT_FILE: nats.hostsAccountFile,
      ...caOf(nats),
      HTTP_PORT: String(api),
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: issuer.jwksFile,
      METRICS_PORT: String(metrics),
      ...settings,
    },
    urlOf(api, '/readyz'),
    place,
  );
  return { program, metricsUrl: urlOf(metrics, '/metrics'), baseUrl: urlOf(api, '') };
}

/** Starts actors processes and gateways, as many as `copies` says. */
export async function startPrograms(
  t: Lifetime,
  folder: string,
  nats: NatsAccess,
  settings: ProgramSettings,
  copies: { readonly actors: number; readonly gateways: number },
  compiled = thisRelease,
) {
  const issuer = await prepareTokenIssuer(join(folder, 'tokens'));
  const placeOf = (copy: number): Place => ({
    folder: copy === 0 ? folder : join(folder, `copy-${copy}`),
    compiled,
  });
  const actors: Awaited<ReturnType<typeof startActors>>[] = [];
  for (let copy = 0; copy < copies.actors; copy++)
    actors.push(await startActors(t, placeOf(copy), nats, settings.actors));
  const gateways: Awaited<ReturnType<typeof startGateway>>[] = [];
  for (let copy = 0; copy < copies.gateways; copy++)
    gateways.push(await startGateway(t, placeOf(copy), nats, issuer, settings.gateway));
  return { issuer, actors, gateways };
}

/** Starts a NATS server for this test, with one actors process and one gateway. */
export async function startControlPlane(t: Lifetime, folder: string, settings: ProgramSettings) {
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const access: NatsAccess = { ...nats, urls: [nats.url] };
  const programs = await startPrograms(t, folder, access, settings, { actors: 1, gateways: 1 });
  const [actors, gateway] = [programs.actors[0]!, programs.gateways[0]!];
  return {
    nats,
    access,
    issuer: programs.issuer,
    actors: actors.program,
    gateway: gateway.program,
    metricsUrls: { actors: actors.metricsUrl, gateway: gateway.metricsUrl },
    baseUrl: gateway.baseUrl,
  };
}
