/**
 * The device of the demo peer in `npm start`: a network namespace with the peer's WireGuard file,
 * as a phone would have it. It reaches the demo container through the tunnel.
 */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { pathWith } from '../fetch/wrappers.ts';
import { enter, strike } from '../process/ledger.ts';
import { removeNamespace } from '../process/reap.ts';
import { run } from '../process/run.ts';
import { answering, makeWireguardLink } from '../servers/wireguard-link.ts';
import { demoNetwork, localHost, type Stack, type VpnTools } from '../stack/stack.ts';
import { demoName } from './container.ts';
import { filesOf, type DemoPeer } from './peer.ts';

const deadlineMs = 20_000;
const port = 8080;

export interface Device {
  /** Text about the addresses that it reaches. */
  readonly said: string;
  stop(): Promise<void>;
}

/** Values of one name in a WireGuard file, whose lists may have commas. */
const valuesIn = (file: string, name: string): string[] =>
  [...file.matchAll(new RegExp(`^${name} *= *(.+)$`, 'gm'))].flatMap(([, list = '']) => list.split(/ *, */));

/** The part of a file of `wg-quick` that `wg` takes. */
const withoutQuick = (file: string): string => file.replaceAll(/^(?:Address|DNS|MTU) *=.*\n/gm, '');

/** @param id of the demo container */
export async function startDevice(
  { api, tokens }: Stack,
  tools: VpnTools,
  peer: DemoPeer,
  id: string,
  state: string,
  signal: AbortSignal,
): Promise<Device> {
  await api.serve(tokens.operator.token, demoNetwork, localHost.key);
  const { network } = await api.status(tokens.tenants.demo.token, id);
  const address = network?.ipv4 ?? (network?.ipv6 === undefined ? undefined : `[${network.ipv6}]`);
  if (address === undefined) throw new Error(`${demoName} has no address in the tenant network`);
  const mark = createHash('sha256').update(state).digest('hex').slice(0, 8);
  const [name, link] = [`longshore-device-${mark}`, `lsd${mark}`];
  const env = { ...process.env, PATH: pathWith(join(state, 'vpn', 'bin'), tools, process.env['PATH'] ?? '') };
  const must = async (...[command = '', ...words]: readonly string[]): Promise<void> => {
    const ran = await run(command, words, { deadlineMs, env });
    if (ran.code !== 0) throw new Error(`${command} ${words.join(' ')}: ${ran.stderr.trim()}`);
  };
  const stop = async (): Promise<void> => {
    await removeNamespace(name);
    strike(`${mark}/device`);
  };
  await stop();
  enter({ kind: 'namespace', id: `${mark}/device`, name });
  try {
    const file = await (await fetch(filesOf(api.baseUrl, peer).WireGuard)).text();
    const kept = join(state, 'vpn', `${link}.conf`);
    writePrivateFile(kept, withoutQuick(file));
    await must('ip', 'netns', 'add', name);
    await makeWireguardLink(must, link, kept, name, signal);
    rmSync(kept);
    for (const own of valuesIn(file, 'Address')) await must('ip', '-n', name, 'address', 'add', own, 'dev', link);
    await must('ip', '-n', name, 'link', 'set', link, 'mtu', '1420', 'up');
    for (const range of valuesIn(file, 'AllowedIPs'))
      await must('ip', '-n', name, 'route', 'replace', range, 'dev', link);
    const url = `http://${address}:${port}/`;
    const ask = `fetch(process.argv[1]).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))`;
    await answering(() => must('ip', 'netns', 'exec', name, process.execPath, '-e', ask, url), signal);
    return { said: `reaches ${demoName} through the tunnel: ip netns exec ${name} curl -s ${url}`, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
