/**
 * `host-agent doctor`: examines this host, and prints what is wrong and what to do. It changes
 * nothing. Each check has a deadline, and none needs another to be well.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { ConfigurationError, readSettings } from '../../lib/config.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { version } from '../../lib/version.ts';
import { limits } from '../../schemas/limits.ts';
import { lifetimeOf } from '../link/identity/identity.ts';
import { ownerLabels } from '../docker/ownership.ts';
import { createTransport, isHere } from '../docker/transport.ts';
import { bridgeOf, isBridgedFiltered } from '../network/firewall.ts';
import { systemNft, type Nft } from '../network/nft.ts';
import { checkSettings, publishPortsOf, settings, type AgentSettings } from '../settings.ts';
import { judgeCredentials, seeCredentials, type CredentialFacts } from './credentials.ts';
import { daemonSettings, unseenDaemon } from './daemon.ts';
import { judgeEngineDisk, judgeStateDisk, seeDisk } from './disk.ts';
import { askEngine, engineFault, judgeEngine, type EngineFacts } from './engine.ts';
import { examine, fail, isWell, lines, ok, type Finding } from './finding.ts';
import { askGateway, judgeClock, judgeGateway } from './gateway.ts';
import { askNats, judgeNats } from './nats.ts';
import { judgeLogFiles, judgeNetwork, judgePublishAddress, seeLogFiles, seeRules } from './network.ts';
import { judgePorts, localRange, portsIn } from './ports.ts';
import { judgeSecretFolder, seeSecretFolder } from './secret-files.ts';
import { judgeTenantNetwork, seeSocket } from './tenant-network.ts';

export interface DoctorParts {
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly asJson: boolean;
  readonly say: (line: string) => void;
  /** Replaces the program nft. */
  readonly nft?: Nft;
}

/** Resolves to the exit code: 1 if a check fails. */
export async function doctor(parts: DoctorParts): Promise<number> {
  const findings = await examineAll(parts);
  const isOk = isWell(findings);
  if (parts.asJson) parts.say(JSON.stringify({ version, ok: isOk, findings }));
  else for (const line of lines(findings)) parts.say(line);
  return isOk ? 0 : 1;
}

async function examineAll(parts: DoctorParts): Promise<readonly Finding[]> {
  let given: AgentSettings;
  try {
    given = checkSettings(readSettings(settings, parts.env));
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.faults.map((fault) => fail('settings', fault, 'docs/configuration.md lists all settings'));
  }
  const credentials = await seeCredentials(given.STATE_DIR);
  const engine = engineOf(given, credentials);
  const checks = await Promise.all([
    examine('engine', () => ofEngine(given, engine)),
    examine('disk', () => ofDisks(given, engine)),
    examine('secret files', () => ofSecretFiles(given)),
    ofControlPlane(parts, given, credentials),
    examine('network', () => ofNetwork(parts, given, engine, credentials)),
    examine('tenant network', () => ofTenantNetwork(given)),
  ]);
  return [ok('settings', 'can be read'), ...checks.flat()];
}

interface Seen {
  readonly facts: EngineFacts | undefined;
  readonly error?: unknown;
}

/** Asks once, for all checks that need it. */
async function engineOf({ DOCKER_HOST: address }: AgentSettings, { identity }: CredentialFacts): Promise<Seen> {
  const transport = createTransport(address, () => {});
  try {
    const labels = identity === undefined ? undefined : ownerLabels(identity);
    return { facts: await askEngine(transport, labels, isHere(address)) };
  } catch (error) {
    return { facts: undefined, error };
  } finally {
    transport.close();
  }
}

async function ofEngine({ DOCKER_HOST: address }: AgentSettings, engine: Promise<Seen>): Promise<Finding[]> {
  const { facts, error } = await engine;
  if (facts === undefined) return [engineFault(error, address)];
  const daemon = isHere(address) ? await daemonSettings(facts.info.DockerRootDir) : unseenDaemon;
  return judgeEngine(facts, daemon);
}

async function ofDisks(given: AgentSettings, engine: Promise<Seen>): Promise<Finding[]> {
  const state = judgeStateDisk(await seeDisk(given.STATE_DIR), given.STATE_DIR);
  const { facts } = await engine;
  if (facts === undefined) return [state];
  const rootDir = facts.info.DockerRootDir;
  const disk = rootDir === undefined ? undefined : await seeDisk(rootDir);
  const at = { imagesHigh: given.IMAGES_HIGH_PERCENT, pressure: given.DISK_PRESSURE_PERCENT };
  return [state, judgeEngineDisk(disk, rootDir, at)];
}

async function ofSecretFiles({ SECRET_FILES_DIR: folder, DOCKER_HOST: address }: AgentSettings): Promise<Finding[]> {
  return [judgeSecretFolder(await seeSecretFolder(folder), folder, isHere(address))];
}

/** Clock, gateway, credentials and NATS. */
async function ofControlPlane(
  { clock }: DoctorParts,
  given: AgentSettings,
  credentials: CredentialFacts,
): Promise<Finding[]> {
  const { LONGSHORE_URL: url } = given;
  const { identity, seed } = credentials;
  const nowMs = (): number => clock.nowMs();
  const own = judgeCredentials(credentials, given.STATE_DIR, nowMs());
  const servers = given.NATS_URLS.length > 0 ? given.NATS_URLS : (identity?.natsUrls ?? []);
  const { doctorAnswerMs: answerMs } = limits;
  const issuedMs = identity === undefined ? undefined : lifetimeOf(identity.jwt)?.sinceMs;
  const [ofGateway, ofNats] = await Promise.all([
    examine('gateway', async () => {
      const facts = await askGateway(url, nowMs, answerMs);
      return [judgeGateway(facts, url, identity !== undefined), judgeClock(facts, issuedMs, nowMs())];
    }),
    examine(
      'NATS',
      async () => {
        if (identity === undefined || seed === undefined) return [];
        return judgeNats(await askNats({ servers, identity, seed, caFile: given.NATS_CA_FILE, ms: answerMs }), servers);
      },
      // One server after the other may not answer.
      limits.doctorCheckMs + servers.length * answerMs,
    ),
  ]);
  return [...ofGateway, ...own, ...ofNats];
}

async function ofTenantNetwork(given: AgentSettings): Promise<Finding[]> {
  const { NET_SOCKET: socket } = given;
  return judgeTenantNetwork({ ...given, error: socket === undefined ? undefined : await seeSocket(socket) });
}

const readOrNone = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);

async function ofNetwork(
  { nft = systemNft }: DoctorParts,
  given: AgentSettings,
  engine: Promise<Seen>,
  { identity }: CredentialFacts,
): Promise<Finding[]> {
  const { facts } = await engine;
  const network = facts?.networks[0];
  const bridging = ['bridge-nf-call-iptables', 'bridge-nf-call-ip6tables'].map(
    (name) => `/proc/sys/net/bridge/${name}`,
  );
  const paths = [...bridging, '/proc/net/if_inet6'];
  const read = new Map(await Promise.all(paths.map(async (path) => [path, await readOrNone(path)] as const)));
  const tables = await Promise.all(['tcp', 'tcp6', 'udp', 'udp6'].map((name) => readOrNone(`/proc/net/${name}`)));
  const own = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
  const rootDir = facts?.info.DockerRootDir;
  const readsFiles = isHere(given.DOCKER_HOST) && given.LOG_SOURCE === 'files';
  return [
    ...judgeNetwork({
      mode: given.CONTAINER_FIREWALL,
      network,
      hasBridge: network !== undefined && existsSync(`/sys/class/net/${bridgeOf(network)}`),
      isBridgedFiltered: isBridgedFiltered((path) => read.get(path)),
      nft: await seeRules(nft, identity),
    }),
    judgePublishAddress(given.PUBLISH_ADDRESS, own),
    ...judgePorts({
      range: publishPortsOf(given),
      outgoing: localRange((await readOrNone('/proc/sys/net/ipv4/ip_local_port_range')) ?? ''),
      listening: tables.flatMap((table) => portsIn(table ?? '')),
      published: facts?.published ?? new Set(),
    }),
    ...(facts === undefined
      ? []
      : [judgeLogFiles(readsFiles && rootDir !== undefined ? await seeLogFiles(rootDir) : 'off')]),
  ];
}
