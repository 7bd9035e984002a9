/** Decides what a tenant asks of its logins at registries; as with secrets (secrets.ts). Pure. */
import { timestamp } from '../../../lib/time/timestamp.ts';
import type { LoginRecord, LoginView } from '../../../schemas/api/secret.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { again, changed, eventOf, withNext } from '../container/transitions.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, noChanges, refuse, type Changes, type Turn, type TurnContext } from '../turn.ts';
import { inTurns } from '../tenant/turns.ts';
import { floorAbove } from './secrets.ts';
import { isNewer } from './state.ts';
import { nextVersion } from './versions.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const viewOf = (host: string, record: LoginRecord | null): LoginView => ({
  host,
  username: record?.username ?? null,
  updated_at: record === null ? null : timestamp(record.updatedAtMs),
});

/** All of them, by registry: there are few. */
export function list(state: PartitionView, ask: Of<'login.list'>): Turn {
  const { logins } = state.tenant(ask.tenant).secrets;
  const hosts = [...logins].sort(([one], [other]) => (one < other ? -1 : 1));
  return answer(
    data(
      'ok',
      hosts.map(([host, record]) => viewOf(host, record)),
    ),
  );
}

function nextOf(state: PartitionView, { tenant, registry }: Pick<Of<'login.put'>, 'tenant' | 'registry'>): number {
  const { logins, floor } = state.tenant(tenant).secrets;
  return nextVersion(logins.get(registry)?.version, floor, state.vpn.incarnation);
}

/** The next version and the current login, for the gateway that is to seal a new password. */
export function material(state: PartitionView, ask: Of<'login.material'>): Turn {
  const { logins } = state.tenant(ask.tenant).secrets;
  const current = logins.get(ask.registry);
  const next = nextOf(state, ask);
  if (current == null) return answer(data('ok', { next, current: null }));
  const { version, username, sealed } = current;
  return answer(data('ok', { next, current: { version, username, sealed, view: viewOf(ask.registry, current) } }));
}

/** Containers whose pull was refused are tried again (`tryAgain`). */
export function put(state: PartitionView, ask: Of<'login.put'>, context: TurnContext): Turn {
  const { logins } = state.tenant(ask.tenant).secrets;
  if (ask.version !== nextOf(state, ask)) return refuse('precondition_failed', 'the login has changed meanwhile');
  if (!logins.has(ask.registry) && logins.size >= limits.registriesPerTenant)
    return conflict(
      'too_many',
      `there are already ${limits.registriesPerTenant} logins, which is the most: delete one first`,
      { max: limits.registriesPerTenant },
    );
  const record: LoginRecord = {
    kind: 'login',
    tenant: ask.tenant,
    registry: ask.registry,
    version: ask.version,
    username: ask.username,
    sealed: ask.sealed,
    updatedAtMs: context.nowMs,
  };
  const code = logins.has(ask.registry) ? 'ok' : 'created';
  return answer(data(code, viewOf(ask.registry, record)), { ...noChanges, records: [record] });
}

export function remove(state: PartitionView, ask: Of<'login.remove'>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  const before = tenant.secrets.logins.get(ask.registry);
  if (before === undefined) return refuse('not_found');
  const records = [floorAbove(tenant, before?.version ?? 0, context)];
  const deletes = [keys.login(ask.tenant, ask.registry)];
  return answer({ code: 'no_content', body: '' }, { ...noChanges, records, deletes });
}

/**
 * Tries the containers again that a registry refused, but not with this login, a bounded number at
 * a time; at the end it notes that there are none left.
 */
export const tryAgain = (state: PartitionView, context: TurnContext): Generator<Changes, void, void> =>
  inTurns(state.loginsToTry(), (login) => trying(state, login, context), limits.secretRollsPerSweep);

/** One container in each turn. */
function* trying(state: PartitionView, login: LoginRecord, context: TurnContext): Generator<Changes, void, void> {
  const { secrets, containers } = state.tenant(login.tenant);
  for (const id of secrets.refusedBy(login.registry)) {
    const record = containers.get(id);
    // Or refused with this login too.
    if (record === undefined || !isNewer(login, record)) {
      yield noChanges;
      continue;
    }
    const next = withNext(record, context, { observed: again(record.observed, 'pending') });
    yield changed(next, [eventOf('registry_changed', next, context)]);
  }
  yield { ...noChanges, heard: { tried: login } };
}
