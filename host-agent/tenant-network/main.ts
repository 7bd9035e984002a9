/**
 * `longshore-net`: keeps the tenant network of one host in the kernel. It is a program of its own,
 * because it enters namespaces, for which the agent has no right, and because it outlives the
 * agent.
 */
import { readSettings } from '../../lib/config.ts';
import { runProgram } from '../../lib/lifecycle.ts';
import { createLog, logLevelOf } from '../../lib/log.ts';
import { Keeper } from './keeper.ts';
import { keepMeshKeys } from './mesh-keys.ts';
import { NetworkService } from './service.ts';
import { desiredFile, ikeTrafficFile, meshKeysFile, namesFile, netSettings } from './settings.ts';

const log = createLog('longshore-net', logLevelOf(process.env));
await runProgram(log, async (life) => {
  const given = readSettings(netSettings, process.env);
  const service = new NetworkService({
    socket: given.NET_SOCKET,
    file: desiredFile(given),
    names: namesFile(given),
    router: given.NET_ROUTER,
    keeper: new Keeper({
      router: given.NET_ROUTER,
      namespaces: given.NET_NAMESPACES,
      viciSocket: given.NET_VICI,
      ikeTrafficFile: ikeTrafficFile(given),
      meshKeys: keepMeshKeys(meshKeysFile(given), log),
      log,
    }),
    intervalMs: given.NET_INTERVAL,
    log,
  });
  life.onStop({ name: 'tenant network', deadlineMs: service.stopDeadlineMs, stop: () => service.stop() });
  await service.start();
});
