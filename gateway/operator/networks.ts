/** The operator's VPN networks, and the files that a network's VPN server fetches. */
import { isNetworkName } from '../../schemas/ids.ts';
import type { RouteName } from '../../schemas/routes.ts';
import type { NetworkRecord, NetworkView } from '../../schemas/api/network.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { Outcome } from '../../lib/rpc/partition-client.ts';
import { succeeded, type CallOf, type HandlerOf, type Handlers } from '../call.ts';
import { networkPlace } from '../vpn/service/networks/authority.ts';
import { conditional } from '../http/conditional.ts';
import type { Forage } from '../vpn/vpn.ts';
import { keyringOf, type Keyring } from '../vpn/service/keyring.ts';
import { refusing } from '../vpn/service/refusal.ts';
import { nftablesOfServer, swanctlOfServer, wireguardOfServer } from '../vpn/service/networks/server-files.ts';
import { listByKey } from '../http/pages.ts';

/** Routes of a network's files that its VPN server fetches. */
type ServerFile = Extract<
  RouteName,
  `network.${'wireguard' | 'swanctl' | 'nftables' | 'server_certificate' | 'server_key' | 'ca'}`
>;

/** Of an answer that shows the network. */
function serversIn({ body }: Outcome): Outcome {
  const { data } = decodeAnswer('network.serve', body);
  return { code: 'ok', body: JSON.stringify({ data: { host_keys: data.servers } }) };
}

const text = 'text/plain; charset=utf-8';
const pem = 'application/x-pem-file';

export function networkRoutes({ actors, networks, keyring, clock, log }: Forage) {
  const list = refusing<'network.list'>(log, (call) => {
    const { limit } = call.query;
    return listByKey(
      call.query,
      { isKey: isNetworkName, keyOf: ({ name }: Pick<NetworkView, 'name'>) => name },
      (after) =>
        Promise.all(
          actors
            .partitions()
            .map(async (partition) => actors.read(call, { type: 'network.list', partition, limit, after })),
        ),
    );
  });

  const create = refusing<'network.create'>(log, async (call) => {
    return networks.create(call, call.body, keyringOf(keyring));
  });

  const get: HandlerOf<'network.get'> = (call) =>
    actors.ask(call, { type: 'network.get', network: call.params.network });

  const put = refusing<'network.put'>(log, async (call) =>
    networks.put(call, call.params.network, call.body, keyringOf(keyring)),
  );

  const remove: HandlerOf<'network.remove'> = (call) =>
    actors.askWrite(call, { type: 'network.remove', network: call.params.network });

  const servers: HandlerOf<'network.servers.get'> = async (call) => {
    const outcome = await actors.ask(call, { type: 'network.get', network: call.params.network });
    return succeeded(outcome) ? serversIn(outcome) : outcome;
  };

  const serve: HandlerOf<'network.servers.put'> = async (call) => {
    const { host_keys: hosts } = call.body;
    const [by = null] = hosts;
    const outcome = await actors.askWrite(call, { type: 'network.serve', network: call.params.network, by });
    return succeeded(outcome) ? serversIn(outcome) : outcome;
  };

  const unserve: HandlerOf<'network.servers.remove'> = async (call) => {
    const outcome = await actors.askWrite(call, { type: 'network.serve', network: call.params.network, by: null });
    return succeeded(outcome) ? { code: 'no_content', body: '' } : outcome;
  };

  const serverFile = (
    type: string,
    contentOf: (call: CallOf<ServerFile>, network: NetworkRecord, keys: Keyring) => Promise<string> | string,
  ): HandlerOf<ServerFile> =>
    refusing<ServerFile>(log, async (call) => {
      const keys = keyringOf(keyring);
      const network = await networks.fresh(call, call.params.network, keys);
      const whole = ['content-type', type, 'x-content-type-options', 'nosniff'];
      return conditional(call, await contentOf(call, network, keys), { whole });
    });

  const openKey = ({ name, server }: NetworkRecord, { vault }: Keyring): string =>
    vault.open(networkPlace(name, 'server'), server.privateKey);

  return {
    'network.list': list,
    'network.create': create,
    'network.get': get,
    'network.put': put,
    'network.remove': remove,
    'network.servers.get': servers,
    'network.servers.put': serve,
    'network.servers.remove': unserve,
    'network.wireguard': serverFile(text, (call, network, keys) =>
      wireguardOfServer(call, network, keys, actors, clock),
    ),
    'network.swanctl': serverFile(text, (call, network) => swanctlOfServer(call, network, actors, clock)),
    'network.nftables': serverFile(text, (call, network) => nftablesOfServer(call, network, actors, clock)),
    'network.server_certificate': serverFile(pem, (_call, { server }) => server.pem),
    'network.server_key': serverFile(pem, (_call, network, keys) => openKey(network, keys)),
    'network.ca': serverFile(pem, (_call, { ca }) => ca.pem),
  } satisfies Partial<Handlers>;
}
