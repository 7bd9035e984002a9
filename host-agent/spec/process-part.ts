/** The part `process` of a container, as the engine takes it. Pure. */
import { ulimitOf } from '../../schemas/api/fields/process-part.ts';
import { sizeBytes } from '../../schemas/quantity.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { ulimits } from './confinement.ts';

/** Members of a create's body and of its `HostConfig`; undeclared members are left to the image. */
export function processOf({ process: part = {} }: Pick<DesiredContainer, 'process'>) {
  const { entrypoint, command, user, working_dir, tmpfs, shm_size, init, read_only, ulimits: given } = part;
  const ofTmpfs = Object.entries(tmpfs ?? {}).map(([path, size]) => [path, `size=${sizeBytes(size)}`]);
  const ofProcesses = Object.entries(given ?? {}).map(([name, value]) => {
    const { soft: Soft, hard: Hard } = ulimitOf(value)!;
    return { Name: name, Soft, Hard };
  });
  return {
    program: {
      ...(entrypoint === undefined ? {} : { Entrypoint: entrypoint }),
      ...(command === undefined ? {} : { Cmd: command }),
      ...(user === undefined ? {} : { User: user }),
      ...(working_dir === undefined ? {} : { WorkingDir: working_dir }),
    },
    hostConfig: {
      ...(init === undefined ? {} : { Init: init }),
      ...(read_only === undefined ? {} : { ReadonlyRootfs: read_only }),
      ...(tmpfs === undefined ? {} : { Tmpfs: Object.fromEntries(ofTmpfs) as Record<string, string> }),
      ...(shm_size === undefined ? {} : { ShmSize: sizeBytes(shm_size) }),
      ...(given === undefined ? {} : { Ulimits: [...ulimits, ...ofProcesses] }),
    },
  };
}
