/** The VPN area on real parts: NATS, actors and a gateway, with no host and no engine. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { startNats } from '../../../deploy/nats.ts';
import { freePort } from '../../../deploy/process.ts';
import { devAudience, devIssuer, prepareTokenIssuer } from '../../../deploy/tokens.ts';
import type { NetworkView } from '../../../schemas/network.ts';
import type { PeerView } from '../../../schemas/peer.ts';
import { clientOf, startRunning, type Client, type Running } from '../rig.ts';

export type NewPeer = PeerView & {
  readonly p12_password: string;
  readonly pac_token: string;
  readonly download_token: string;
};

export interface VpnRig {
  readonly baseUrl: string;
  readonly actors: Running;
  readonly gateway: Running;
  /** Scope `operator`. */
  readonly operator: Client;
  client(tenant: string): Promise<Client>;
  /** The file that the gateway's VPN_KEYS_FILE names. */
  readonly keysFile: string;
  /** Everything that gateway and actors have logged. */
  logs(): string;
  network(body: object): Promise<NetworkView>;
  peer(client: Client, body: object): Promise<NewPeer>;
  /** A file without other credentials than what is in its URL. */
  file(path: string, headers?: Record<string, string>): Promise<File>;
}

export interface File {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
}

/** Under which name a browser keeps it. */
export function attachmentName({ headers }: File): string {
  const [, name] = /^attachment; filename="([^"]+)"$/.exec(headers.get('content-disposition') ?? '') ?? [];
  if (name === undefined) throw new Error(`not an attachment: ${headers.get('content-disposition')}`);
  return name;
}

export const newKeyLine = (id: string): string => `${id}:${randomBytes(32).toString('base64')}\n`;

const deadlineMs = 60_000;

export async function startVpnRig(t: Test, settings: Record<string, string> = {}): Promise<VpnRig> {
  const folder = mkdtempSync(join(tmpdir(), 'longshore-vpn-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const issuer = await prepareTokenIssuer(join(folder, 'tokens'));
  const keysFile = join(folder, 'vpn-keys');
  writeFileSync(keysFile, newKeyLine('k1'), { mode: 0o600 });
  const ports = { actors: await freePort(), gateway: await freePort(), api: await freePort() };
  const url = (port: number, path: string): string => `http://127.0.0.1:${port}${path}`;
  const natsSettings = { NATS_URLS: nats.url, NATS_CREDS_FILE: nats.credsFile };
  const actors = await startRunning(
    t,
    'actors',
    {
      ...natsSettings,
      HOSTS_ACCOUNT: nats.hostsAccount,
      HOSTS_SIGNING_SEED_FILE: nats.hostsSigningSeedFile,
      METRICS_PORT: String(ports.actors),
    },
    url(ports.actors, '/readyz'),
    folder,
  );
  const gateway = await startRunning(
    t,
    'gateway',
    {
      ...natsSettings,
      HTTP_PORT: String(ports.api),
      AUTH_ISSUER: devIssuer,
      AUTH_AUDIENCE: devAudience,
      AUTH_JWKS_FILE: issuer.jwksFile,
      VPN_KEYS_FILE: keysFile,
      METRICS_PORT: String(ports.gateway),
      ...settings,
    },
    url(ports.api, '/readyz'),
    folder,
  );
  const baseUrl = url(ports.api, '');
  const mint = async (tenant: string, scope?: string): Promise<Client> =>
    clientOf(
      baseUrl,
      await issuer.mint({ tenant, subject: 'user', lifetimeS: 3600, ...(scope === undefined ? {} : { scope }) }),
    );
  const operator = await mint('ops', 'operator');

  const made = async <T>(client: Client, path: string, body: object): Promise<T> => {
    const answer = await client.call<{ data: T }>('POST', path, body);
    if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
    return answer.body.data;
  };

  return {
    baseUrl,
    actors,
    gateway,
    operator,
    client: (tenant) => mint(tenant),
    keysFile,
    logs: () => ['gateway', 'actors'].map((name) => readFileSync(join(folder, `${name}.log`), 'utf8')).join('\n'),
    network: (body) => made(operator, '/api/v2/operator/networks', body),
    peer: (client, body) => made(client, '/api/forage/peers', body),
    async file(path, headers = {}) {
      const answer = await fetch(baseUrl + path, { headers, signal: AbortSignal.timeout(deadlineMs) });
      const bytes = Buffer.from(await answer.arrayBuffer());
      return { status: answer.status, headers: answer.headers, bytes, text: bytes.toString('utf8') };
    },
  };
}
