/** The machine's IPv4 routes, as the kernel lists them. */
import { readFileSync } from 'node:fs';
import type { Cidr } from '../../schemas/cidr.ts';

export interface Route {
  readonly device: string;
  readonly network: Cidr;
}

/**
 * Parses /proc/net/route, without the default route. Its addresses are hexadecimal in the byte
 * order of the machine, which is little-endian.
 */
export function parseRoutes(text: string): Route[] {
  const swap = (hex: string): number => Buffer.from(hex, 'hex').readUInt32LE(0);
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .flatMap(([device, destination, , , , , , mask]) => {
      if (device === undefined || destination === undefined || mask === undefined) return [];
      const prefix = Math.clz32(~swap(mask));
      return prefix === 0
        ? []
        : [{ device: device.trim(), network: { family: 4, base: BigInt(swap(destination)), prefix } }];
    });
}

export const currentRoutes = (): Route[] => parseRoutes(textOf('/proc/net/route'));

/** The content of a file; empty if there is no such file, as on another system than Linux. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
