/** Requests of tests to containers in the network of their tenant. */
import { join } from 'node:path';
import type { Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import type { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import type { Client } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import type { Rig } from '../support/rig.ts';
import { open } from '../../integration/sessions/client.ts';
import type { Orders } from '../../integration/host-agent/tenant-network/inside.ts';
import { startInside, type Tell } from '../../support/sandbox.ts';

export const compute = '/api/v2/compute';
export const small = { cpu_limit: '0.5', mem_limit: '64m' };
export const port = 7000;
/** A server that sends its name to everyone who connects. */
export const answering = `nc -ll -p ${port} -e echo "I am $NAME"`;

export function tenantNetwork(rig: Pick<Rig, 'baseUrl'>) {
  const status = async (client: Client, container: Container): Promise<ContainerStatusView> =>
    (await client.status(container)).body.data;
  /** Output of a script in a container. */
  const prints = async (client: Client, from: Container, script: string): Promise<string> => {
    const query = new URLSearchParams();
    for (const part of ['sh', '-c', `${script} 2>&1`]) query.append('command', part);
    const session = await open(`${rig.baseUrl}${compute}/${from.id}/exec?${query}`, client);
    await session.closed();
    return session.bytes(1).toString().trim();
  };
  return {
    status,
    prints,
    attached: (client: Client, container: Container) =>
      eventually(
        `${container.name} is in the network`,
        () => status(client, container),
        ({ network }) => network?.state === 'ready',
      ),
    addressOf: async (client: Client, container: Container): Promise<string> =>
      (await status(client, container)).network?.ipv6 ?? '',
    ipv4Of: async (client: Client, container: Container): Promise<string> =>
      (await status(client, container)).network?.ipv4 ?? '',
    /** Text that a container receives from an address or a name. */
    hears: (client: Client, from: Container, address: string): Promise<string> =>
      prints(client, from, `nc -w 3 ${address} ${port} </dev/null`),
  };
}

/** Starts a process of the host in the network of a container, which obeys orders. */
export async function inside(t: Test, { engine }: Pick<Rig, 'engine'>, { id }: Container): Promise<Tell<Orders>> {
  const { NetworkSettings } = await engine.networked(id);
  const program = join(repositoryRoot, 'dist/test/integration/host-agent/tenant-network/inside.js');
  return startInside<Orders>(t, NetworkSettings.SandboxKey, program);
}
