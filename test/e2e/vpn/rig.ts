/** The VPN area on real parts: NATS, actors and a gateway, with no host and no engine. */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { NetworkView } from '../../../schemas/api/network.ts';
import type { PeerView } from '../../../schemas/api/peer.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { holdToDocument } from '../../support/http/api-answers.ts';
import { clientOf, type Client } from '../support/client.ts';
import { startControlPlane, type Running } from '../support/programs.ts';

export type NewPeer = PeerView & {
  readonly p12_password: string;
  readonly pac_token: string;
  readonly download_token: string;
};

export interface VpnRig {
  readonly baseUrl: string;
  readonly actors: Running;
  readonly gateway: Running;
  /** A client with the scope `operator`. */
  readonly operator: Client;
  client(tenant: string): Promise<Client>;
  /** The file that the gateway's VAULT_KEYS_FILE names. */
  readonly keysFile: string;
  /** The whole log of gateway and actors. */
  logs(): string;
  /** Creates a network, open to every tenant unless the body says otherwise. */
  network(body: object): Promise<NetworkView>;
  peer(client: Client, body: object): Promise<NewPeer>;
  /** Downloads a file with the credentials in its URL and in `headers`. */
  file(path: string, headers?: Record<string, string>): Promise<File>;
}

export interface File {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
}

/** The name under which a browser saves the file. */
export function attachmentName({ headers }: File): string {
  const [, name] = /^attachment; filename="([^"]+)"$/.exec(headers.get('content-disposition') ?? '') ?? [];
  if (name === undefined) throw new Error(`not an attachment: ${headers.get('content-disposition')}`);
  return name;
}

export const newKeyLine = (id: string): string => `${id}:${randomBytes(32).toString('base64')}\n`;

const deadlineMs = 60_000;

export async function startVpnRig(t: Test, settings: Record<string, string> = {}): Promise<VpnRig> {
  const folder = temporaryFolder(t, 'longshore-vpn-');
  const keysFile = join(folder, 'vpn-keys');
  writeFileSync(keysFile, newKeyLine('k1'), { mode: 0o600 });
  const { issuer, actors, gateway, baseUrl } = await startControlPlane(t, folder, {
    actors: {},
    gateway: { VAULT_KEYS_FILE: keysFile, ...settings },
  });
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
    network: (body) => made(operator, '/api/v2/operator/networks', { tenants: null, ...body }),
    peer: (client, body) => made(client, '/api/forage/peers', body),
    async file(path, headers = {}) {
      const answer = await fetch(baseUrl + path, { headers, signal: AbortSignal.timeout(deadlineMs) });
      const bytes = Buffer.from(await answer.arrayBuffer());
      const file = { status: answer.status, headers: answer.headers, bytes, text: bytes.toString('utf8') };
      holdToDocument({ method: 'GET', path, ...file });
      return file;
    },
  };
}
