/**
 * The last check before a file. Every value in a configuration or a script passes one of these
 * functions, which return text of a small alphabet or throw. Bodies are validated long before, so a
 * failure here is a bug, and no file is better than one that runs something else.
 */
import { formatAddress, formatCidr, parseAddress, parseCidr } from '../../../schemas/cidr.ts';
import { isNetworkName, isPeerId, isTenantId } from '../../../schemas/ids.ts';
import { hostOf } from '../../../schemas/host-name.ts';

export class Unfit extends Error {
  /** Omits the text itself, because it may be a key. */
  constructor(what: string) {
    super(`a VPN file can't be written: unfit ${what}`);
    this.name = 'Unfit';
  }
}

function fit<T>(what: string, value: T | undefined): T {
  if (value === undefined) throw new Unfit(what);
  return value;
}

const matching = (what: string, pattern: RegExp) => (text: string) => fit(what, pattern.test(text) ? text : undefined);

/** A key of 32 bytes, as `wg genkey` prints it. */
export const fitKey = matching('key', /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/);
export const fitBase64 = matching('base64', /^[A-Za-z0-9+/]+={0,2}$/);

export const fitHost = (text: string): string => fit('host', hostOf(text));
export const fitNetworkName = (text: string): string => fit('network name', isNetworkName(text) ? text : undefined);
export const fitTenant = (text: string): string => fit('tenant', isTenantId(text) ? text : undefined);
export const fitPeerId = (text: string): string => fit('peer id', isPeerId(text) ? text : undefined);

export function fitAddress(text: string): string {
  const { family, value } = fit('address', parseAddress(text));
  return formatAddress(family, value);
}

export const fitCidr = (text: string): string => formatCidr(fit('network', parseCidr(text)));

export const fitInteger = (value: number, minimum: number, maximum: number): number =>
  fit('number', Number.isInteger(value) && value >= minimum && value <= maximum ? value : undefined);

export const fitPort = (port: number): number => fitInteger(port, 1, 65535);
