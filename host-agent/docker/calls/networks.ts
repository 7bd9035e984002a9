/** Calls about networks. */
import { decode, type Network } from '../answers.ts';
import { json, labelFilter, parse, type EngineClient, type Labels } from './client.ts';

export interface NetworkCalls {
  /** Networks that bear every one of the labels. */
  networks(labels: Labels): Promise<Network[]>;
  createNetwork(name: string, body: object): Promise<void>;
  /** @returns `false` if containers use it. A network that is gone counts as removed */
  removeNetwork(id: string): Promise<boolean>;
}

export const networkCalls = ({ ask }: EngineClient): NetworkCalls => ({
  networks: async (labels) => {
    const name = 'network list';
    const path = `/networks?filters=${labelFilter(labels)}`;
    return parse(name, decode.networks, await ask({ name, method: 'GET', path }, [200]));
  },
  createNetwork: async (networkName, body) => {
    const call = { name: 'network create', method: 'POST', path: '/networks/create' } as const;
    await ask({ ...call, body: json({ ...body, Name: networkName }) }, [201]);
  },
  removeNetwork: async (id) => {
    const call = { name: 'network remove', method: 'DELETE', path: `/networks/${id}` } as const;
    return (await ask(call, [204, 404, 403, 409])).status < 400;
  },
});
