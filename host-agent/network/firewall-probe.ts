/**
 * Tests the firewall from a tenant's position: a short-lived container on the tenants' bridge tries
 * to reach a listener of this agent on the host, and the metadata address. The container holds only
 * this program's interpreter, mounted from the host, so it needs no pull and runs no tenant's
 * image. An agent that is in a container itself has no such file on the host, and uses its own
 * image.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import Type from 'typebox';
import { messageOf } from '../../lib/error-message.ts';
import { withAbort, within } from '../../lib/time/backoff.ts';
import { decoder } from '../../lib/decode.ts';
import type { Network } from '../docker/answers.ts';
import { Demultiplexer } from '../docker/demux.ts';
import type { ContainerBody } from '../docker/calls/containers.ts';
import type { Engine } from '../docker/engine.ts';
import { ownContainerIn } from './own-container.ts';
import { networkName, type Owner } from '../docker/ownership.ts';
import { KiB, MiB, seconds } from '../../schemas/limits/units.ts';

/** The time of a probe, and of each of its connections. */
const probeMs = 60 * seconds;
const probePatienceMs = 3 * seconds;
/** The limits of its container, and of its output. */
const probeMemoryBytes = 256 * MiB;
const probePids = 64;
const probeOutputChars = 64 * KiB;

const decodeWords = decoder(Type.Array(Type.String()));

export type Probed =
  | { readonly kind: 'held' }
  | { readonly kind: 'reached'; readonly what: string }
  /** The probe gave no result. */
  | { readonly kind: 'failed'; readonly why: string };

/** Never rejects. Removes what it made, even when aborted. */
export type Probe = (network: Network, signal: AbortSignal) => Promise<Probed>;

interface Target {
  readonly what: string;
  readonly host: string;
  readonly port: number;
}

/** Not among the labels of tenants' containers: no inventory counts it. */
const probeLabel = 'longshore.probe';
const image = { repo: 'longshore-probe', tag: '1' } as const;
/** Two blocks of zeros: a tar archive without a file. */
const emptyTar = Buffer.alloc(1024);

/** Runs in the container. Prints, for each target, "connected" or the reason of its failure. */
const script = `
const [targets, patienceMs] = JSON.parse(process.argv[1]);
const attempt = ({ host, port }) => new Promise((resolve) => {
  const socket = require('node:net').connect({ host, port });
  const end = (word) => { socket.destroy(); resolve(word); };
  socket.setTimeout(patienceMs, () => end('timeout'));
  socket.once('connect', () => end('connected'));
  socket.once('error', (error) => end(String(error.code)));
});
Promise.all(targets.map(attempt)).then((words) => console.log(JSON.stringify(words)));
`;

/** The interpreter, and the libraries that it has loaded. */
function interpreterFiles(): string[] {
  // It would ask DNS for the names of all peers, and block everything else meanwhile.
  Object.assign(process.report, { excludeNetwork: true });
  const report = process.report.getReport() as { readonly sharedObjects?: readonly string[] };
  const libraries = (report.sharedObjects ?? []).filter((path) => path.startsWith('/') && existsSync(path));
  return [...new Set([process.execPath, ...libraries])];
}

/** @param mountinfo the text that shows whether this program is in a container */
export function createProbe(
  engine: Engine,
  owner: Owner,
  mountinfo = (): string => readFileSync('/proc/self/mountinfo', 'utf8'),
): Probe {
  const marks = { [probeLabel]: `${owner.cluster}/${owner.host}` };
  let files: readonly string[] | undefined;

  /** `undefined` also if another engine made the container of this program. */
  const ownImage = async (): Promise<string | undefined> => {
    const own = ownContainerIn(mountinfo());
    return own === undefined ? undefined : (await engine.inspect(own))?.Image;
  };

  const body = (network: Network, targets: readonly Target[], own: string | undefined): ContainerBody => {
    const mounted = own === undefined ? (files ??= interpreterFiles()) : [];
    const words = JSON.stringify([targets, probePatienceMs]);
    const libraries = `LD_LIBRARY_PATH=${[...new Set(mounted.map((path) => dirname(path)))].join(':')}`;
    return {
      Image: own ?? `${image.repo}:${image.tag}`,
      Entrypoint: [process.execPath, '-e', script, words],
      User: '65534:65534',
      Env: own === undefined ? [libraries] : [],
      Labels: marks,
      HostConfig: {
        NetworkMode: network.Name,
        Mounts: mounted.map((path) => ({ Type: 'bind', Source: path, Target: path, ReadOnly: true })),
        ReadonlyRootfs: true,
        RestartPolicy: { Name: 'no' },
        Memory: probeMemoryBytes,
        MemorySwap: probeMemoryBytes,
        PidsLimit: probePids,
        SecurityOpt: ['no-new-privileges'],
        CapDrop: ['ALL'],
        LogConfig: { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '1' } },
      },
    };
  };

  /** Also removes the containers of a killed agent. */
  const clear = async (): Promise<void> => {
    for (const { Id } of await engine.list(marks)) {
      await engine.stop(Id, 0);
      await engine.remove(Id);
    }
  };

  const create = async (network: Network, targets: readonly Target[]): Promise<string> => {
    // Of this cluster and this host alone: agents of several clusters may share an engine.
    const name = `${networkName(owner)}-probe`;
    const own = await ownImage();
    const made = body(network, targets, own);
    let result = await engine.create(name, made);
    if (result.kind === 'no_image' && own === undefined) {
      await engine.importImage(image.repo, image.tag, emptyTar);
      result = await engine.create(name, made);
    }
    if (result.kind !== 'created') throw new Error(`the probe's container was not made: ${result.kind}`);
    return result.id;
  };

  const wordsOf = async (id: string, signal: AbortSignal): Promise<string[]> => {
    await engine.start(id);
    const { stream } = await engine.logs(id, { follow: true, since: '0' }, signal);
    let text = '';
    const demultiplexer = new Demultiplexer(probeOutputChars);
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      for (const frame of demultiplexer.push(chunk)) text += frame.payload.toString('utf8');
      if (text.length > probeOutputChars) throw new Error('the probe printed too much');
    }
    const [said] = /\["[^\n]*\]/.exec(text) ?? [];
    if (said === undefined) throw new Error(`the probe printed: ${text.trim().slice(0, 200)}`);
    return decodeWords(Buffer.from(said));
  };

  const attempt = async (network: Network, signal: AbortSignal): Promise<Probed> => {
    const gateways = (network.IPAM?.Config ?? []).flatMap(({ Gateway }) => Gateway?.split('/')[0] ?? []);
    const canaries: Awaited<ReturnType<typeof listen>>[] = [];
    try {
      for (const gateway of gateways) canaries.push(await listen(gateway));
      const targets: Target[] = [
        ...canaries.map(({ host, port }) => ({ what: `this host at ${host}`, host, port })),
        { what: 'the metadata address 169.254.169.254', host: '169.254.169.254', port: 80 },
      ];
      await clear();
      const words = await wordsOf(await create(network, targets), signal);
      const reached = targets.filter((_, index) => words[index] === 'connected').map(({ what }) => what);
      if (reached.length > 0) return { kind: 'reached', what: reached.join(' and ') };
      // The metadata address may have no listener: without a listener of its own the probe proves
      // nothing.
      if (canaries.length === 0) return { kind: 'failed', why: `the engine names no gateway of ${network.Name}` };
      return { kind: 'held' };
    } finally {
      for (const { close } of canaries) close();
      await clear();
    }
  };

  return (network, signal) =>
    withAbort([signal], (ending) => within(attempt(network, ending.signal), probeMs, 'the probe')).catch(
      (error: unknown) => ({ kind: 'failed', why: messageOf(error) }),
    );
}

/** A listener for the probe, on an address that only containers reach. */
async function listen(host: string): Promise<Target & { close(): void }> {
  const server = createServer((socket) => socket.on('error', () => undefined).end());
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  return { what: '', host, port: (server.address() as AddressInfo).port, close: () => void server.close() };
}
