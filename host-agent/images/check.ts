/**
 * Checks whether an image may be used: the engine repeats its configuration for each of its
 * containers, and its health check in events that it keeps in memory. Pure.
 */
import { posix } from 'node:path';
import { limits } from '../../schemas/limits.ts';
import type { ImageDetails } from '../docker/answers.ts';

const bytesOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);

const over = (what: string, amount: number, unit: string, max: number): string | undefined =>
  amount > max
    ? `the image's ${what} ${amount}${unit}, and at most ${max} are allowed; rebuild it with fewer`
    : undefined;

/** The reason why the image is refused; `undefined` if it may run. */
export function imageFault({ Config }: ImageDetails): string | undefined {
  const { Labels, Entrypoint, Cmd, Env, Healthcheck, ...others } = Config ?? {};
  const labels = Object.entries(Labels ?? {});
  const names = labels.map(([name]) => name);
  const command = [...(Entrypoint ?? []), ...(Cmd ?? [])];
  const { imageLabelBytes, imageLabelNameBytes, imageCommandBytes, imagePorts, imageVolumes } = limits;
  const volumes = Object.keys(others.Volumes ?? {});
  return (
    over('labels take', bytesOf(labels.flat()), ' bytes', imageLabelBytes) ??
    over('names of labels take', bytesOf(names), ' bytes', imageLabelNameBytes) ??
    over('entrypoint and command take', bytesOf(command), ' bytes', imageCommandBytes) ??
    over('environment takes', bytesOf(Env ?? []), ' bytes', limits.imageEnvBytes) ??
    over('health check takes', bytesOf(Healthcheck?.Test ?? []), ' bytes', limits.healthCommandBytes) ??
    over('EXPOSE names', Object.keys(others.ExposedPorts ?? {}).length, ' ports', imagePorts) ??
    over('VOLUME names', volumes.length, ' volumes', imageVolumes) ??
    over(`${otherMembers} take`, Buffer.byteLength(JSON.stringify(others)), ' bytes', limits.imageOtherBytes) ??
    outside(volumes)
  );
}

/** The engine mounts a volume of its own there, over the one that a container keeps. */
function outside(volumes: readonly string[]): string | undefined {
  const path = volumes.find((each) => /^\.\.?(\/|$)/.test(posix.normalize(each)));
  return path === undefined
    ? undefined
    : `the image's VOLUME ${JSON.stringify(path)} is no path below /, so what it holds would be lost in each update; rebuild it with an absolute path`;
}

const otherMembers = 'user, working directory, shell, ONBUILD and names of ports and volumes';

export const imageTooLarge =
  `the image's configuration or history has over ${limits.imageConfigBytes} bytes; ` +
  `at most ${limits.imageLabelBytes} of labels are allowed; rebuild it with fewer`;

export const labelNames = ({ Config }: ImageDetails): string[] => Object.keys(Config?.Labels ?? {});
