/** Settings of the VPN area: its URL, its default network. */
import { ConfigurationError } from '../../lib/config.ts';
import { isNetworkName, type NetworkName } from '../../schemas/ids.ts';
import { isBaseUrl } from '../vpn/render/links.ts';
import type { GatewayConfiguration } from './settings.ts';

/**
 * Without a slash at the end. A URL that some format of file cannot hold is refused here, at the
 * start. @throws ConfigurationError
 */
export function publicUrlOf({ PUBLIC_URL: url }: Pick<GatewayConfiguration, 'PUBLIC_URL'>): string | undefined {
  if (url === undefined) return undefined;
  const base = URL.canParse(url) ? new URL(url).href.replace(/\/+$/, '') : '';
  if (!isBaseUrl(base)) {
    throw new ConfigurationError([
      'PUBLIC_URL must be an http or https URL without user, query and fragment; its path may have letters, digits and . _ ~ -',
    ]);
  }
  return base;
}

/** @throws ConfigurationError */
export function defaultNetworkOf({ VPN_DEFAULT_NETWORK: name }: GatewayConfiguration): NetworkName {
  if (!isNetworkName(name))
    throw new ConfigurationError([
      `VPN_DEFAULT_NETWORK must be a network name: lower-case letters, digits and "-"; "${name}" is none`,
    ]);
  return name;
}
