/**
 * `longshore-net`: keeps the tenant network of one host in the kernel. It is a program of its own,
 * because it enters namespaces, for which the agent has no right, and because it outlives the
 * agent.
 */
import { duration, readSettings, text } from '../../lib/config.ts';
import { runProgram } from '../../lib/lifecycle.ts';
import { createLog, logLevelOf } from '../../lib/log.ts';
import { seconds } from '../../schemas/limits/units.ts';
import { Keeper } from './keeper.ts';
import { NetworkService } from './service.ts';

export const settings = {
  NET_SOCKET: text('Unix socket on which the agent says what is desired. Only the agent may reach its folder.'),
  NET_STATE_DIR: text('Folder in which the last desired state is kept.'),
  NET_ROUTER: text('Name of the router namespace, another one for each agent of a machine.', { fallback: 'longshore' }),
  NET_NAMESPACES: text('Folder in which the engine has the files of its network namespaces.', {
    fallback: '/var/run/docker/netns',
  }),
  NET_INTERVAL: duration('Time between two looks at the kernel.', {
    min: 1 * seconds,
    max: 600 * seconds,
    fallback: 15 * seconds,
  }),
};

const log = createLog('longshore-net', logLevelOf(process.env));
await runProgram(log, async (life) => {
  const given = readSettings(settings, process.env);
  const service = new NetworkService({
    socket: given.NET_SOCKET,
    stateFolder: given.NET_STATE_DIR,
    router: given.NET_ROUTER,
    keeper: new Keeper({ router: given.NET_ROUTER, namespaces: given.NET_NAMESPACES, log }),
    intervalMs: given.NET_INTERVAL,
    log,
  });
  life.onStop({ name: 'tenant network', deadlineMs: service.stopDeadlineMs, stop: () => service.stop() });
  await service.start();
});
