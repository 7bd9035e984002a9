/**
 * Secrets and registry logins of a tenant (ADR 37). A value is sealed here, and leaves this process
 * only sealed: no ask, log line, error or hash has it.
 */
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { registryPattern } from '../../schemas/api/fields/container.ts';
import { isMet } from '../../schemas/api/etag.ts';
import { registryName } from '../../schemas/api/registry.ts';
import type { Sealed, SecretPlace } from '../../schemas/records/sealed.ts';
import { secretNamePattern } from '../../schemas/api/secret.ts';
import { limits } from '../../schemas/limits.ts';
import type { Log } from '../../lib/log.ts';
import type { AskOwner, Outcome } from '../../lib/rpc/partition-client.ts';
import { succeeded, tenantOf, written, type Call, type HandlerOf, type Handlers, type Writer } from '../call.ts';
import { conflict, failure, invalid, ok, type Result } from '../http/respond.ts';
import { noVaultKeys, SealError, type Vault } from '../vault/vault.ts';

const secretName = new RegExp(secretNamePattern);
const registry = new RegExp(registryPattern);

const unmet = failure('precondition_failed', 'the secret or login is not as the conditions of the request say');
/** The owner says what there is, and writes only the version after that. */
const isAsAsked = ({ origin: { when } }: Call, { head }: Outcome): boolean =>
  when === undefined || isMet(when, head?.etag);

const atTheSameTime = 'it was changed by others at the same time: send the request again';

export interface SecretRoutesOptions extends Writer {
  readonly ask: AskOwner;
  /** Undefined without keys. */
  readonly vault: Vault | undefined;
  readonly log: Log;
}

export function secretRoutes(options: SecretRoutesOptions) {
  const { ask, vault, log } = options;
  const asker = (call: Call) => ({ tenant: tenantOf(call), ...call.origin });
  const writing = (call: Call) => ({ tenant: tenantOf(call), ...written(options, call) });

  /** A value that does not open any more may be replaced. */
  const isSame = ({ requestId }: Call, keys: Vault, place: SecretPlace, sealed: Sealed, value: Buffer): boolean => {
    try {
      return keys.openBytes(place, sealed).equals(value);
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      log.error('secret_open_failed', { requestId, of: place.of, why: error.why });
      return false;
    }
  };

  /** `step`: undefined if the version that it sealed for is no longer the next one. */
  const sealing = async (step: (keys: Vault) => Promise<Result | undefined>): Promise<Result> => {
    if (vault === undefined) return failure('unavailable', noVaultKeys);
    for (let attempt = 0; attempt < limits.sealAttempts; attempt++) {
      const result = await step(vault);
      if (result !== undefined) return result;
    }
    return conflict('changed', atTheSameTime);
  };

  const unlessStale = (outcome: Outcome): Result | undefined =>
    outcome.code === 'precondition_failed' ? undefined : outcome;

  const putSecret: HandlerOf<'secret.put'> = (call) => {
    const { secret: name } = call.params;
    if (!secretName.test(name)) return invalid({ name: [`must match ${secretNamePattern}`] });
    const { bytes, isBinary } = call.body;
    const placeOf = (version: number) => ({ of: 'secret', tenant: tenantOf(call), name, version }) as const;
    return sealing(async (keys) => {
      const read = await ask('read', { type: 'secret.material', name, ...asker(call) }, call.deadlineMs);
      if (!succeeded(read)) return read;
      const { next, current } = decodeAnswer('secret.material', read.body).data;
      if (!isAsAsked(call, read)) return unmet;
      const { stage: isStaged } = call.query;
      const kept =
        current?.sealed != null && isSame(call, keys, placeOf(current.version), current.sealed, bytes)
          ? { version: current.version, sealed: current.sealed, stage: 'over' as const }
          : undefined;
      if (current !== null && kept !== undefined && (isStaged || current.view.staged !== true))
        return ok(current.view, read);
      const made = { version: next, sealed: keys.seal(placeOf(next), bytes) };
      const binary = isBinary ? { binary: true as const } : {};
      const write = {
        type: 'secret.put',
        name,
        ...(kept ?? { ...made, ...(isStaged ? { stage: 'only' as const } : {}) }),
        ...binary,
        ...writing(call),
      } as const;
      return unlessStale(await ask('write', write, call.deadlineMs));
    });
  };

  const putLogin: HandlerOf<'registry.put'> = (call) => {
    const { registry: given } = call.params;
    if (given.length > limits.imageNameChars || !registry.test(given))
      return invalid({ registry: ['must be a registry: host or host:port'] });
    const host = registryName(given);
    const { username, password } = call.body;
    const value = Buffer.from(password);
    const placeOf = (version: number) => ({ of: 'login', tenant: tenantOf(call), registry: host, version }) as const;
    return sealing(async (keys) => {
      const read = await ask('read', { type: 'login.material', registry: host, ...asker(call) }, call.deadlineMs);
      if (!succeeded(read)) return read;
      const { next, current } = decodeAnswer('login.material', read.body).data;
      const hasSameName = current?.username === username;
      if (!isAsAsked(call, read)) return unmet;
      if (current !== null && hasSameName && isSame(call, keys, placeOf(current.version), current.sealed, value))
        return ok(current.view, read);
      const sealed = keys.seal(placeOf(next), value);
      const login = { type: 'login.put', registry: host, version: next, username, sealed } as const;
      return unlessStale(await ask('write', { ...login, ...writing(call) }, call.deadlineMs));
    });
  };

  const secrets: HandlerOf<'secret.list'> = (call) =>
    ask('read', { type: 'secret.list', ...asker(call) }, call.deadlineMs);

  const logins: HandlerOf<'registry.list'> = (call) =>
    ask('read', { type: 'login.list', ...asker(call) }, call.deadlineMs);

  const removeSecret: HandlerOf<'secret.remove'> = (call) =>
    ask('write', { type: 'secret.remove', name: call.params.secret, ...writing(call) }, call.deadlineMs);

  const removeLogin: HandlerOf<'registry.remove'> = (call) => {
    const host = registryName(call.params.registry);
    return ask('write', { type: 'login.remove', registry: host, ...writing(call) }, call.deadlineMs);
  };

  const uses: HandlerOf<'container.secrets'> = (call) =>
    ask('read', { type: 'container.secrets', id: call.params.id, ...asker(call) }, call.deadlineMs);

  const putUses: HandlerOf<'container.secrets.put'> = (call) => {
    const write = { type: 'container.secrets.put', id: call.params.id, secrets: call.body } as const;
    return ask('write', { ...write, ...writing(call) }, call.deadlineMs);
  };

  return {
    'secret.list': secrets,
    'secret.put': putSecret,
    'secret.remove': removeSecret,
    'registry.list': logins,
    'registry.put': putLogin,
    'registry.remove': removeLogin,
    'container.secrets': uses,
    'container.secrets.put': putUses,
  } satisfies Partial<Handlers>;
}
