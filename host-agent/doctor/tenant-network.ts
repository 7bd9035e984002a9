/** The program that keeps the tenant network, and the way to other hosts. */
import { connect } from 'node:net';
import { bracketed } from '../../schemas/host-name.ts';
import { seconds } from '../../schemas/limits/units.ts';
import type { AgentSettings } from '../settings.ts';
import { fail, ok, warn, type Finding } from './finding.ts';

const connectMs = 2 * seconds;

export interface TenantNetworkFacts extends Pick<AgentSettings, 'NET_SOCKET' | 'MESH' | 'MESH_ADDRESS'> {
  /**
   * The code of the error, such as `ENOENT`; `undefined` if it takes connections, or was not asked.
   */
  readonly error: string | undefined;
}

/** Connects, and sends nothing. Never rejects. @returns the code of the error */
export function seeSocket(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (code: string | undefined): void => {
      socket.destroy();
      resolve(code);
    };
    socket.setTimeout(connectMs, () => settle('ETIMEDOUT'));
    socket.once('connect', () => settle(undefined));
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code ?? error.message));
  });
}

/** Pure. */
export function judgeTenantNetwork({ NET_SOCKET: socket, MESH, MESH_ADDRESS, error }: TenantNetworkFacts): Finding[] {
  const check = 'tenant network';
  if (socket === undefined)
    return [ok(check, 'off, because NET_SOCKET is not set: containers of a tenant do not reach each other')];
  if (error === 'EACCES' || error === 'EPERM') {
    const remedy = 'give longshore-net the agent’s group (Group= in its unit)';
    return [fail(check, `this process may not write to ${socket}`, remedy)];
  }
  if (error !== undefined) {
    const remedy = 'start longshore-net, with the same NET_SOCKET';
    return [fail(check, `longshore-net does not answer at ${socket} (${error})`, remedy)];
  }
  return [ok(check, 'longshore-net answers'), judgeMesh(MESH, MESH_ADDRESS)];
}

function judgeMesh(mode: AgentSettings['MESH'], at: AgentSettings['MESH_ADDRESS']): Finding {
  if (mode === 'off') return ok('mesh', 'off, as MESH says: containers of other hosts are not reached');
  if (at === undefined)
    return warn(
      'mesh',
      'containers of other hosts are not reached',
      'set MESH_ADDRESS to the address and UDP port at which other hosts reach this one, or MESH=off',
    );
  return ok('mesh', `other hosts reach this one at ${bracketed(at.address)}:${at.port}, if its own firewall lets them`);
}
