/**
 * The resources that asks name, and the declaration of each. An ETag stands for the declaration,
 * and for nothing that a host, a clock or a renewal changes. Pure.
 */
import { canonicalSpec } from '../../../schemas/api/fields/container.ts';
import { etagOf } from '../../../schemas/api/etag.ts';
import { defaultPolicy, textOfPolicy } from '../../../schemas/api/policy.ts';
import { noSecrets, usesShown } from '../../../schemas/api/secret.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { StateRecord } from '../records.ts';
import { currentOf } from '../secret/state.ts';
import type { PartitionView } from '../state.ts';

/** The key of a resource, and its current record; `undefined` if there is none. */
export interface Resource {
  readonly key: string;
  readonly record: StateRecord | undefined;
}

/** The resource that an ask reads or changes; `undefined` if it has no ETag. */
export function resourceOf(state: PartitionView, ask: Ask): Resource | undefined {
  switch (ask.type) {
    case 'container.get':
    case 'container.create':
    case 'container.update':
    case 'container.rollback':
    case 'container.start':
    case 'container.stop':
    case 'container.delete':
    case 'container.operate':
    case 'container.inspect':
    case 'metadata.get':
    case 'metadata.put':
    case 'policy.get':
    case 'policy.put':
    case 'container.secrets':
    case 'container.secrets.put':
    case 'spec.get':
    case 'spec.put':
    case 'spec.create':
    case 'spec.plan':
      return { key: keys.container(ask.tenant, ask.id), record: state.tenant(ask.tenant).containers.get(ask.id) };
    case 'peer.get':
    case 'peer.create':
    case 'peer.update':
    case 'peer.rotate':
    case 'peer.password':
    case 'peer.remove':
    case 'peer.token.create':
    case 'peer.token.remove':
    case 'peer.link.create':
    case 'peer.link.remove':
      return { key: keys.peer(ask.tenant, ask.peer), record: state.tenant(ask.tenant).peers.records.get(ask.peer) };
    case 'secret.material':
    case 'secret.put':
    case 'secret.remove': {
      const values = state.tenant(ask.tenant).secrets.values.get(ask.name);
      const version = currentOf(values) ?? 0;
      const key = keys.secret(ask.tenant, ask.name, ask.type === 'secret.put' ? ask.version : version);
      return { key, record: values?.get(version) ?? undefined };
    }
    case 'login.material':
    case 'login.put':
    case 'login.remove': {
      const record = state.tenant(ask.tenant).secrets.logins.get(ask.registry) ?? undefined;
      return { key: keys.login(ask.tenant, ask.registry), record };
    }
    case 'key.create':
    case 'key.remove': {
      const id = ask.type === 'key.create' ? ask.made.id : ask.key;
      return { key: keys.key(ask.tenant, id), record: state.tenant(ask.tenant).keys.get(id) ?? undefined };
    }
    case 'tenant.get':
    case 'tenant.put':
      return { key: keys.tenant(ask.tenant), record: state.tenant(ask.tenant).record };
    case 'host.get':
    case 'host.create':
    case 'host.update':
    case 'host.join_token':
    case 'host.remove':
      return { key: keys.host(ask.host), record: state.host(ask.host) };
    case 'network.get':
    case 'network.create':
    case 'network.put':
    case 'network.serve':
    case 'network.remove':
      return { key: keys.network(ask.network), record: state.vpn.network(ask.network).record };
    default:
      return undefined;
  }
}

const usualPolicy = textOfPolicy(defaultPolicy);
const noUses = usesShown(noSecrets);

// Records are immutable, so an ETag belongs to its record for as long as either lives.
const etags = new WeakMap<StateRecord, string>();

/** `undefined` for the remains of a resource. */
export function etagOfRecord(record: StateRecord): string | undefined {
  const known = etags.get(record);
  if (known !== undefined) return known;
  const declared = declaredOf(record);
  if (declared === undefined) return undefined;
  const etag = etagOf(declared);
  etags.set(record, etag);
  return etag;
}

function declaredOf(record: StateRecord): unknown {
  switch (record.kind) {
    case 'container': {
      const { id, spec, secrets, secretRefs, configFiles, desired } = record;
      const policy = record.policy === undefined ? usualPolicy : textOfPolicy(record.policy);
      const uses = secrets === undefined ? noUses : usesShown(secrets);
      return [id, canonicalSpec(spec), policy, uses, secretRefs, configFiles, desired];
    }
    case 'peer': {
      const { id, name, network, enabled, expiresAtMs, routes, dns, wireguard, tokens } = record;
      return [id, name, network, enabled, expiresAtMs, routes, dns, wireguard.publicKey, tokens.map((one) => one.id)];
    }
    case 'secret':
      return [record.name, record.version];
    case 'login':
      return [record.registry, record.version];
    case 'key':
      return [record.id];
    case 'tenant': {
      const { tenant, regions, caps, regionCaps, registries = null, regionRegistries = {} } = record;
      return [tenant, regions, caps, regionCaps, registries, regionRegistries];
    }
    case 'host': {
      const { key, region, cordoned, draining, drainAtOnce = null, ceiling = {}, renewExpired = true } = record;
      return [key, region, cordoned, draining, drainAtOnce, ceiling, renewExpired];
    }
    case 'network':
      return [record.name, record.settings];
    default:
      return undefined;
  }
}
