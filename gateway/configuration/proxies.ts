/** The proxies whose X-Forwarded-For a gateway trusts. */
import { BlockList, isIP } from 'node:net';
import { ConfigurationError } from '../../lib/config.ts';

/** @throws ConfigurationError */
export function trustedProxies(networks: readonly string[]): BlockList {
  const proxies = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/', 2);
    const version = isIP(address);
    const prefix = bits === undefined ? (version === 4 ? 32 : 128) : Number(bits);
    if (version === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > (version === 4 ? 32 : 128)) {
      throw new ConfigurationError([`TRUSTED_PROXIES: "${network}" is neither an address nor a network in CIDR form`]);
    }
    proxies.addSubnet(address, prefix, version === 4 ? 'ipv4' : 'ipv6');
  }
  return proxies;
}
