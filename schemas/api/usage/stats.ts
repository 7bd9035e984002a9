/** Resources that a container uses at the moment. */
import Type, { type Static } from 'typebox';
import { nullable } from '../nullable.ts';

const bytes = (description: string) => Type.Integer({ minimum: 0, description });

export const ContainerStats = Type.Object(
  {
    cpu_millis: Type.Integer({
      minimum: 0,
      description: 'CPU over the last second, in thousandths of a core, as `cpu_limit` counts it.',
    }),
    mem_bytes: bytes('Memory in use, without file pages that the kernel can drop at once.'),
    mem_limit: nullable(bytes('The `mem_limit` of the container that runs. Null where the engine does not say it.')),
    net_rx_bytes: nullable(bytes('Received since the container started, over all networks. Null where it is unknown.')),
    net_tx_bytes: nullable(bytes('Sent since the container started, over all networks. Null where it is unknown.')),
    pids: nullable(Type.Integer({ minimum: 0, description: 'Processes and threads. Null if unknown.' })),
    at: Type.String({ description: 'The time of the sample, by the clock of the host.' }),
  },
  { additionalProperties: false },
);
export type ContainerStats = Static<typeof ContainerStats>;
