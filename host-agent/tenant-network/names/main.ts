/**
 * `longshore-dns`: one of the two resolvers of a host. Containers ask it for the names of their
 * tenant's containers; it outlives the agent and `longshore-net`, and answers with the last known
 * names.
 */
import type { Socket } from 'node:dgram';
import { Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { readSettings } from '../../../lib/config.ts';
import { decoder } from '../../../lib/decode.ts';
import { runProgram } from '../../../lib/lifecycle.ts';
import { createLog, logLevelOf } from '../../../lib/log.ts';
import { seconds } from '../../../schemas/limits/units.ts';
import { resolverAddresses } from '../../../schemas/tenant-network.ts';
import { KnownNames } from '../../../schemas/wire/net.ts';
import { dnsSettings, namesFile } from '../settings.ts';
import { bind } from './binding.ts';
import { Followed } from './followed.ts';
import { ResolverSupervisor } from './supervisor.ts';
import { Answering } from './worker.ts';

const stopMs = 2 * seconds;
const decodeNames = decoder(KnownNames);
const log = createLog('longshore-dns', logLevelOf(process.env));

/**
 * The addresses of one resolver of this host. `undefined` if `longshore-net` has written none yet.
 */
function followAddresses(file: string, which: 0 | 1): () => readonly string[] | undefined {
  const followed = new Followed<readonly string[] | undefined>(file, undefined, (bytes) => {
    const { ranges } = decodeNames(bytes);
    return resolverAddresses([ranges.ipv4, ranges.ipv6], which);
  });
  return () => {
    try {
      followed.look();
    } catch (error) {
      log.debug('resolver_read_failed', { error });
    }
    return followed.value;
  };
}

const [mode, ...given] = process.argv.slice(2);
if (mode === 'bind') {
  await bind(given, (...parts) => process.send?.(...parts));
  process.disconnect();
} else if (mode === 'answer') {
  const answering = new Answering(namesFile(readSettings(dnsSettings, process.env)), log);
  process.on('message', (_message, handle) => {
    if (handle instanceof Server) answering.tcp(handle);
    else answering.udp(handle as unknown as Socket);
  });
  // The process that gave the sockets has ended: the next one binds again.
  process.on('disconnect', () => process.exit(0));
} else {
  await runProgram(log, (life) => {
    const settings = readSettings(dnsSettings, process.env);
    const which = settings.DNS_RESOLVER === 'first' ? 0 : 1;
    const supervisor = new ResolverSupervisor({
      router: settings.NET_ROUTER,
      addresses: followAddresses(namesFile(settings), which),
      program: fileURLToPath(import.meta.url),
      log,
    });
    const ending = new AbortController();
    const running = supervisor.run(ending.signal);
    life.onStop({
      name: 'resolver',
      deadlineMs: stopMs,
      stop: () => {
        ending.abort();
        return running;
      },
    });
    return Promise.resolve();
  });
}
