/**
 * Checks whether an image may be used: the engine repeats its configuration for each of its
 * containers. Pure.
 */
import { limits } from '../../schemas/limits.ts';
import type { ImageDetails } from '../docker/answers.ts';

const bytesOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);

const over = (what: string, amount: number, unit: string, max: number): string | undefined =>
  amount > max
    ? `the image's ${what} ${amount}${unit}, and at most ${max} are allowed; rebuild it with fewer`
    : undefined;

/** Why the image is refused; undefined: it may run. */
export function imageFault({ Config }: ImageDetails): string | undefined {
  const labels = Object.entries(Config?.Labels ?? {});
  const names = labels.map(([name]) => name);
  const command = [...(Config?.Entrypoint ?? []), ...(Config?.Cmd ?? [])];
  const { imageLabelBytes, imageLabelNameBytes, imageCommandBytes, imagePorts, imageVolumes } = limits;
  return (
    over('labels take', bytesOf(labels.flat()), ' bytes', imageLabelBytes) ??
    over('names of labels take', bytesOf(names), ' bytes', imageLabelNameBytes) ??
    over('entrypoint and command take', bytesOf(command), ' bytes', imageCommandBytes) ??
    over('EXPOSE names', Object.keys(Config?.ExposedPorts ?? {}).length, ' ports', imagePorts) ??
    over('VOLUME names', Object.keys(Config?.Volumes ?? {}).length, ' volumes', imageVolumes)
  );
}

export const imageTooLarge =
  `the image's configuration (labels, command, ports, volumes) has over ${limits.imageConfigBytes} bytes; ` +
  `at most ${limits.imageLabelBytes} of labels are allowed; rebuild it with fewer`;

export const labelNames = ({ Config }: ImageDetails): string[] => Object.keys(Config?.Labels ?? {});
