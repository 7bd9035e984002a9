/**
 * Decides whether the engine may contact a registry, right before each pull: a tenant that names a
 * registry makes the engine send a request from the host's own network, which reaches services that
 * no tenant should.
 *
 * This cannot stop two things: a registry that is allowed may refer the engine to any other address
 * (the realm of its `WWW-Authenticate`, a redirect), and a name may resolve to another address when
 * the engine asks a moment later. An egress proxy for the engine stops both (docs/deploy.md).
 */
import { hostsOfRegistry, judgeRegistry } from '../../schemas/api/registry.ts';
import { isPublicAddress } from '../network/addresses.ts';

/** Time in which a registry's name must resolve, before the pull that needs it is postponed. */
const registryLookupMs = 10_000;

export type RegistryFault =
  /** No rule of this host allows it. */
  | 'not_allowed'
  /** Its name is allowed but resolves to a private address. */
  | 'private_address'
  /** Its name does not resolve, so its addresses are unknown. */
  | 'unresolved';

export class RegistryError extends Error {
  readonly fault: RegistryFault;

  constructor(fault: RegistryFault, detail: string, cause?: unknown) {
    super(detail, { cause });
    this.name = 'RegistryError';
    this.fault = fault;
  }
}

/**
 * Public registries that give an image only to those who may have it: they hold the bytes of the
 * images that they name.
 */
const honest = [
  'docker.io',
  'gcr.io',
  'ghcr.io',
  'mcr.microsoft.com',
  'public.ecr.aws',
  'quay.io',
  'registry.gitlab.com',
  'registry.k8s.io',
];

/**
 * `true` if a registry is one of these, or is named by the operator. A tenant may run any other.
 */
export const isVouched = (registry: string, allowed: readonly string[]): boolean =>
  judgeRegistry(registry, [...honest, ...allowed]) === 'named';

/** All addresses of a name. Rejects when the signal aborts. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/** @throws RegistryError if the engine must not contact the registry, or not now */
export type Permit = (registry: string) => Promise<void>;

export function createPermit(allowed: readonly string[], resolve: Resolve): Permit {
  const addressesOf = async (name: string): Promise<readonly string[]> => {
    try {
      const addresses = await resolve(name, AbortSignal.timeout(registryLookupMs));
      if (addresses.length > 0) return addresses;
    } catch (error) {
      throw new RegistryError('unresolved', `${name} does not resolve`, error);
    }
    throw new RegistryError('unresolved', `${name} has no address`);
  };

  return async (registry) => {
    switch (judgeRegistry(registry, allowed)) {
      case 'named':
        return;
      case 'refused':
        throw new RegistryError('not_allowed', `${registry} is not among REGISTRIES_ALLOWED`);
      case 'public':
        for (const name of hostsOfRegistry(registry)) {
          const inside = (await addressesOf(name)).find((address) => !isPublicAddress(address));
          if (inside === undefined) continue;
          throw new RegistryError('private_address', `${name} resolves to ${inside}, which is not a public address`);
        }
    }
  };
}
