/** The operator's VPN networks, and the files that a VPN server is given of one. */
import { isNetworkName } from '../../schemas/ids.ts';
import { decodeKeyCursor } from '../../schemas/api/cursor.ts';
import type { NetworkRecord, NetworkView } from '../../schemas/api/network.ts';
import { networkOf, type Call, type Handler } from '../http/call.ts';
import { networkPlace } from '../vpn/service/networks/authority.ts';
import { conditional } from '../http/conditional.ts';
import type { Forage } from '../vpn/vpn.ts';
import { keyringOf, type Keyring } from '../vpn/service/keyring.ts';
import { refusing } from '../vpn/service/refusal.ts';
import { resealAll } from '../vpn/service/reseal.ts';
import { nftablesOfServer, swanctlOfServer, wireguardOfServer } from '../vpn/service/networks/server-files.ts';
import { mergePages, pageResult, wrongCursor } from '../http/pages.ts';
import { ok } from '../http/respond.ts';
import type { AskedSettings, NetworkToMake } from '../validation/network.ts';

const nameOf = ({ name }: Pick<NetworkView, 'name'>): string => name;
const text = 'text/plain; charset=utf-8';
const pem = 'application/x-pem-file';

export function networkHandlers({ actors, networks, keyring, clock, log }: Forage) {
  const list = refusing(log, async (call) => {
    const { cursor } = call.query;
    const limit = Number(call.query['limit']);
    const after = cursor === undefined ? '' : decodeKeyCursor(String(cursor), isNetworkName);
    if (after === undefined) return wrongCursor;
    const pages = await Promise.all(
      actors
        .partitions()
        .map(async (partition) => actors.read(call, { type: 'network.list', partition, limit, after })),
    );
    return pageResult(mergePages(pages, limit, nameOf), nameOf);
  });

  const create = refusing(log, async (call) => {
    return networks.create(call, call.body as NetworkToMake, keyringOf(keyring));
  });

  const get: Handler = (call) => actors.ask(call, { type: 'network.get', network: networkOf(call) });

  const put = refusing(log, async (call) =>
    networks.put(call, networkOf(call), call.body as AskedSettings, keyringOf(keyring)),
  );

  const remove: Handler = (call) => actors.askWrite(call, { type: 'network.remove', network: networkOf(call) });

  const serverFile = (
    type: string,
    contentOf: (call: Call, network: NetworkRecord, keys: Keyring) => Promise<string> | string,
  ): Handler =>
    refusing(log, async (call) => {
      const keys = keyringOf(keyring);
      const network = await networks.fresh(call, await networks.load(call, networkOf(call)), keys);
      const whole = ['content-type', type, 'x-content-type-options', 'nosniff'];
      return conditional(call, await contentOf(call, network, keys), { whole });
    });

  const openKey = ({ name, server }: NetworkRecord, { vault }: Keyring): string =>
    vault.open(networkPlace(name, 'server'), server.privateKey);

  const reseal = refusing(log, async (call) => {
    const { vault } = keyringOf(keyring);
    return ok(await resealAll(call, { actors, vault, clock, log }));
  });

  return {
    'network.list': list,
    'network.create': create,
    'network.get': get,
    'network.put': put,
    'network.remove': remove,
    'network.wireguard': serverFile(text, (call, network, keys) =>
      wireguardOfServer(call, network, keys, actors, clock),
    ),
    'network.swanctl': serverFile(text, (call, network) => swanctlOfServer(call, network, actors, clock)),
    'network.nftables': serverFile(text, (call, network) => nftablesOfServer(call, network, actors, clock)),
    'network.server_certificate': serverFile(pem, (_call, { server }) => server.pem),
    'network.server_key': serverFile(pem, (_call, network, keys) => openKey(network, keys)),
    'network.ca': serverFile(pem, (_call, { ca }) => ca.pem),
    'secret.reseal': reseal,
  } satisfies Record<string, Handler>;
}
