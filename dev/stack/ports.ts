/**
 * Keeps ports the same between starts, because image references and a host's identity contain them.
 */
import { readFileSync } from 'node:fs';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { freePort, holdPort } from '../process/process.ts';

export const portNames = [
  'api',
  'gatewayMetrics',
  'actorsMetrics',
  'agentMetrics',
  'nats',
  'redis',
  'registry',
  'vpn',
] as const;
export type PortName = (typeof portNames)[number];

/** The API has a well-known port. The others get any free port at the first start. */
const preferred: Partial<Record<PortName, number>> = { api: 8080 };

const decodePorts = decoder(
  Type.Unsafe<Partial<Record<PortName, number>>>(
    Type.Record(Type.String(), Type.Integer({ minimum: 1, maximum: 65_535 })),
  ),
);

export type Ports = Readonly<Record<PortName, number>>;

export function readPorts(file: string): Partial<Record<PortName, number>> {
  try {
    return decodePorts(readFileSync(file));
  } catch {
    return {}; // the first start, or a damaged file: all ports are chosen again
  }
}

/**
 * The ports of the last start, with new ones for those that are taken. They are held until this
 * process ends. Writes them back to the file.
 */
export async function keptPorts(file: string): Promise<Ports> {
  const last = readPorts(file);
  const chosen: Partial<Record<PortName, number>> = {};
  for (const name of portNames) {
    const wanted = last[name] ?? preferred[name];
    const holder = `${file} ${name}`;
    const isOurs = wanted !== undefined && (await holdPort(wanted, holder));
    chosen[name] = isOurs ? wanted : await freePort(holder);
  }
  writePrivateFile(file, JSON.stringify(chosen));
  return chosen as Ports;
}
