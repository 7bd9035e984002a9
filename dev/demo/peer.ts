/** Makes the VPN network and the peer of `npm start` through the API, and prints them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder, DecodeError } from '../../lib/decode.ts';
import type { NetworkName } from '../../schemas/ids.ts';
import type { PeerView } from '../../schemas/api/peer.ts';
import type { Api } from '../api.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { say } from '../steps.ts';
import { demoNetwork, type Stack } from '../stack/stack.ts';

const DemoPeer = Type.Object({
  network: Type.String(),
  peerId: Type.String(),
  p12Password: Type.String(),
  pacToken: Type.String(),
  downloadToken: Type.String(),
});
export type DemoPeer = Static<typeof DemoPeer>;

const decodeDemoPeer = decoder(DemoPeer);
const probeDeadlineMs = 10_000;
const name = 'demo';

/** The peer that an earlier start saved; undefined if there is none, or the file is invalid. */
function savedPeer(file: string): DemoPeer | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return decodeDemoPeer(readFileSync(file));
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

export const filesOf = (baseUrl: string, { peerId, downloadToken, pacToken }: DemoPeer) => ({
  WireGuard: `${baseUrl}/api/forage/config/${peerId}?token=${downloadToken}`,
  'QR code': `${baseUrl}/api/forage/config/${peerId}/qr?token=${downloadToken}`,
  profile: `${baseUrl}/api/forage/profile/${peerId}?token=${downloadToken}`,
  'PKCS#12': `${baseUrl}/api/forage/p12/${peerId}?token=${downloadToken}`,
  proxy: `${baseUrl}/api/forage/pac?token=${pacToken}`,
});

/** True if the saved tokens still work: they expire, and the tenant may have revoked them. */
async function isGood(baseUrl: string, peer: DemoPeer): Promise<boolean> {
  const { WireGuard: conf, proxy } = filesOf(baseUrl, peer);
  const answers = await Promise.all(
    [conf, proxy].map((url) => fetch(url, { signal: AbortSignal.timeout(probeDeadlineMs) })),
  );
  await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  return answers.every(({ ok }) => ok);
}

export async function makeDemoNetwork({
  api,
  tokens,
  vpnPort,
}: Pick<Stack, 'api' | 'tokens' | 'vpnPort'>): Promise<void> {
  await api.network(tokens.operator.token, {
    name: demoNetwork as NetworkName,
    endpoint: '127.0.0.1',
    wireguard_port: vpnPort,
    ipv4_pool: '10.86.0.0/24',
    ipv6_pool: 'fd86::/64',
    // With these routes, a device that activates the demo peer keeps its
    // other connections.
    routes: ['10.86.0.0/24', 'fd86::/64'],
    proxy: { host: '127.0.0.1', port: 3128, domains: ['internal'] },
  });
}

/**
 * The demo peer with its password and tokens. The API shows these only once, so they are saved
 * beside the stack's other secrets. If they are lost or no longer work, the peer gets new ones.
 */
export async function keptDemoPeer(stack: Stack, folder: string): Promise<DemoPeer> {
  const { api, tokens } = stack;
  const { token } = tokens.tenants.demo;
  await makeDemoNetwork(stack);
  const file = join(folder, 'demo-peer.json');
  const saved = savedPeer(file);
  const known = await api.peerNamed(token, name);
  if (saved !== undefined && saved.peerId === known?.id) {
    // A peer that its tenant disabled stays disabled, so its tokens are not expected to work.
    if (known.state !== 'active' || (await isGood(api.baseUrl, saved))) return saved;
  }
  const peer = await renewedPeer(api, token, known);
  writePrivateFile(file, `${JSON.stringify(peer, undefined, 2)}\n`);
  return peer;
}

async function renewedPeer(api: Api, token: string, known: PeerView | undefined): Promise<DemoPeer> {
  if (known === undefined) {
    const made = await api.createPeer(token, { name, network: demoNetwork });
    return {
      network: demoNetwork,
      peerId: made.id,
      p12Password: made.p12_password,
      pacToken: made.pac_token,
      downloadToken: made.download_token,
    };
  }
  return {
    network: demoNetwork,
    peerId: known.id,
    p12Password: await api.peerPassword(token, known.id),
    pacToken: await api.peerToken(token, known.id, 'pac'),
    downloadToken: await api.peerToken(token, known.id, 'download'),
  };
}

/** @param device text about the addresses that its device reaches; `undefined` without a device */
export function showDemoPeer({ api }: Stack, peer: DemoPeer, device: string | undefined): void {
  say(`  VPN peer   ${name} (${peer.peerId}) of network ${peer.network}; its PKCS#12 password is ${peer.p12Password}`);
  if (device !== undefined) say(`  device     ${device}`);
  for (const [file, url] of Object.entries(filesOf(api.baseUrl, peer))) say(`  ${file.padEnd(9)}  ${url}`);
  say('');
}
