/** The engine alone: the calls that every start needs, with the body that the agent sends. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { Identity } from '../../host-agent/link/identity/identity.ts';
import { defaultCapabilities } from '../../host-agent/spec/confinement.ts';
import { createBody } from '../../host-agent/spec/create-body.ts';
import { decoder } from '../../lib/decode.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { load, type BenchImage, type DockerEngine, type Peer } from './peer.ts';
import type { Owner } from '../../host-agent/docker/ownership.ts';

const decodeIdentity = decoder(Identity);

/** The identity of a stack's agent; it names the network of the agent's containers. */
export const ownerOf = (stateFolder: string): Owner =>
  decodeIdentity(readFileSync(join(stateFolder, 'agent', 'identity.json')));

export const referenceOf = ({ registry, repository, tag }: BenchImage): string => `${registry}/${repository}:${tag}`;

const desired = (image: BenchImage, ports: readonly number[]): DesiredContainer => ({
  tenant: 'bench' as TenantId,
  id: uuidv7() as ContainerId,
  generation: 1,
  placement: 1,
  desired: 'running',
  name: 'bench',
  ...image,
  digest: null,
  pull_policy: 'if_not_present',
  ports: [...ports],
  env: {},
  cpu_millis: load.cpuMillis,
  mem_bytes: load.memBytes,
  secret_refs: [],
  config_files: [],
});

/**
 * The body of a create on the agent's network. Its labels are renamed, because the agent would
 * remove an unknown container with its own labels.
 */
export function engineBody(owner: Owner, image: BenchImage, ports: readonly number[] = []): object {
  const made = createBody({
    owner,
    container: desired(image, ports),
    reference: referenceOf(image),
    imageId: image.digest,
    imageLabels: [],
    secrets: {},
    sandbox: null,
    publishAddress: '127.0.0.1',
    hostCpuMillis: Infinity,
    capabilities: defaultCapabilities,
    diskBytes: null,
  }) as { readonly Labels: Record<string, string> };
  const renamed = Object.entries(made.Labels).map(([name, value]) => [name.replace('longshore', 'benchmark'), value]);
  const Labels = Object.fromEntries(renamed) as Record<string, string>;
  // The agent names the image by its id, which only the engine knows.
  return { ...made, Image: referenceOf(image), Labels };
}

interface EngineAloneOptions {
  readonly isPulling?: boolean;
  /** Ports of each container that the engine publishes. */
  readonly ports?: readonly number[];
}

export function engineAlone(engine: DockerEngine, owner: Owner, options: EngineAloneOptions = {}): Peer {
  const { isPulling = false, ports = [] } = options;
  let count = 0;
  const mustBe = async (dockerId: string, running: boolean): Promise<void> => {
    const found = await engine.inspect(dockerId);
    if (found?.State.Running !== running) throw new Error(`container ${dockerId} is ${found?.State.Status}`);
  };
  return {
    name: 'engine alone',
    run: async (image) => {
      if (isPulling) await engine.pull(referenceOf(image));
      const name = `bench-engine-${(count += 1)}`;
      const made = await engine.ask('POST', `/containers/create?name=${name}`, engineBody(owner, image, ports));
      const { Id: dockerId } = JSON.parse(made) as { Id: string };
      await engine.ask('POST', `/containers/${dockerId}/start`);
      await mustBe(dockerId, true);
      return {
        dockerId: () => Promise.resolve(dockerId),
        stop: async () => {
          await engine.ask('POST', `/containers/${dockerId}/stop?t=${load.stopGraceMs / 1000}`);
          await mustBe(dockerId, false);
        },
        remove: async () => void (await engine.ask('DELETE', `/containers/${dockerId}?v=1&force=1`)),
        crash: async () => {
          await engine.kill(dockerId);
          await engine.ask('POST', `/containers/${dockerId}/start`);
          await mustBe(dockerId, true);
        },
      };
    },
  };
}
