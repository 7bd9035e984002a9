/** An agent, and a private registry with one image. */
import { randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import { startPrivateRegistry, username, type AuthKind } from '../../../support/private-registry.ts';
import type { Desire } from '../control-plane-state.ts';
import { startRig, steady } from '../rig.ts';

/** An image with its own content: an engine may have one with the same. */
const imageOf = (repository: string) => ({ repository, tag: '1', cmd: ['sh', '-c', `${steady} # ${randomUUID()}`] });

export async function privateRig(t: Test, kind: AuthKind) {
  const rig = await startRig(t);
  const repository = `longshore/private-${kind}`;
  const registry = await startPrivateRegistry(t, kind, [imageOf(repository)]);
  const { vault } = rig.controlPlane;
  const image: Desire = { registry: registry.address, repository, tag: '1' };
  const setLogin = (tenant: string, password: string) =>
    vault.setLogin(tenant, registry.address, { username, password });
  const ended = async (desire: Desire) => {
    const { id } = rig.controlPlane.desire(desire);
    const item = await rig.controlPlane.reported(id, ({ observation: { status } }) =>
      ['running', 'failed', 'backoff'].includes(status),
    );
    return { id, ...item.observation };
  };
  return { ...rig, open: rig.registry, vault, registry, image, setLogin, ended };
}
