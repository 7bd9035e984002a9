/** Settings of the programs of the tenant network. */
import { join } from 'node:path';
import { choice, duration, optionalText, text } from '../../lib/config.ts';
import { logLevels } from '../../lib/log.ts';
import { seconds } from '../../schemas/limits/units.ts';

const shared = {
  NET_NAMES_DIR: text('Folder in which longshore-net tells the resolvers who has which name. It holds no key.'),
  NET_ROUTER: text('Name of the router namespace, another one for each agent of a machine.', { fallback: 'longshore' }),
  LOG_LEVEL: choice('Lowest level of events that are logged.', logLevels, 'info'),
};

export const netSettings = {
  NET_SOCKET: text('Unix socket on which the agent says what is desired. Only the agent may reach its folder.'),
  NET_STATE_DIR: text('Folder in which the last desired state is kept, with keys. Only longshore-net may read it.'),
  NET_NAMESPACES: text('Folder in which the engine has the files of its network namespaces.', {
    fallback: '/var/run/docker/netns',
  }),
  NET_VICI: optionalText(
    'Unix socket of strongSwan, which serves the VPN networks of this host by IKEv2. Without it they have WireGuard alone.',
  ),
  NET_INTERVAL: duration('Time between two looks at the kernel.', {
    min: 1 * seconds,
    max: 600 * seconds,
    fallback: 15 * seconds,
  }),
  ...shared,
};

export const dnsSettings = {
  DNS_RESOLVER: choice('Which of the two resolvers of the host this is.', ['first', 'second'] as const, 'first'),
  ...shared,
};

/** The file in which `longshore-net` keeps the desired state. */
export const desiredFile = ({ NET_STATE_DIR }: { readonly NET_STATE_DIR: string }): string =>
  join(NET_STATE_DIR, 'desired.json');

/** The file with the keys of this host's end of the mesh. */
export const meshKeysFile = ({ NET_STATE_DIR }: { readonly NET_STATE_DIR: string }): string =>
  join(NET_STATE_DIR, 'mesh-keys.json');

/** The file of the traffic of VPN peers by IKEv2. */
export const ikeTrafficFile = ({ NET_STATE_DIR }: { readonly NET_STATE_DIR: string }): string =>
  join(NET_STATE_DIR, 'ike-traffic.json');

/** The file that the resolvers read. */
export const namesFile = ({ NET_NAMES_DIR }: { readonly NET_NAMES_DIR: string }): string =>
  join(NET_NAMES_DIR, 'names.json');
