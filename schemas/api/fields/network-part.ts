/**
 * The network of a container, that of its tenant or none: the part `network` of its document. Pure.
 */
import Type from 'typebox';
import { networkModes } from '../../words.ts';
import { object, text, type Kind } from './kinds.ts';

export type NetworkMode = (typeof networkModes)[number];

export interface ContainerNetwork {
  readonly mode: NetworkMode;
}

const usual: NetworkMode = 'tenant';
const description = '`tenant`: it is in the network of its tenant. `none`: it is not, and has no name there.';

const mode = Type.Enum([...networkModes], { description });

const settings = object<Partial<ContainerNetwork>>({
  mode: {
    kind: text<NetworkMode>({
      given: Type.Enum([...networkModes], { description, default: usual }),
      shown: Type.Unsafe<NetworkMode>(mode),
      pattern: `^(?:${networkModes.join('|')})$`,
      form: `must be ${networkModes.map((one) => `"${one}"`).join(' or ')}`,
    }),
    fallback: usual,
  },
});

const full = ({ mode = usual }: Partial<ContainerNetwork>): ContainerNetwork => ({ mode });

/** A container shows its mode also where that is the usual one. */
export const networkKind: Kind<ContainerNetwork> = {
  ...(settings as unknown as Kind<ContainerNetwork>),
  shown: Type.Unsafe<ContainerNetwork>(Type.Object({ mode })),
  parse: (value, report) => {
    const parsed = settings.parse(value, report);
    return parsed && full(parsed);
  },
  merged: (before, patch) => full(settings.merged(before, patch)),
};

export const usualNetwork: ContainerNetwork = { mode: usual };
