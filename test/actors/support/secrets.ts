/** A tenant with secrets and logins, whose asks are decided and applied one after another. */
import { decideRead, decideWrite } from '../../../actors/domain/decide.ts';
import type { StateRead } from '../../../actors/runtime/domain.ts';
import { observe } from '../../../actors/domain/container/observe.ts';
import { tryAgain } from '../../../actors/domain/secret/logins.ts';
import { rollSecrets } from '../../../actors/domain/secret/roll.ts';
import type { StateRecord } from '../../../actors/domain/records.ts';
import type { Changes, FleetView, Turn } from '../../../actors/domain/turn.ts';
import type { ContainerRecord, Observation } from '../../../schemas/api/container.ts';
import type { Sealed } from '../../../schemas/records/sealed.ts';
import type { ContainerSecrets, SecretRecord, SecretUses } from '../../../schemas/api/secret.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import type { ReportItem } from '../../../schemas/wire/host.ts';
import { operation } from '../support.ts';
import { acme, apply, container, contextOf, fleetHost, fleetOf, h1, itemOf, observation, stateOf } from './records.ts';

export const sealedAs = (text: string, keyId = 'k1'): Sealed => `v1.${keyId}.wrapped.${text}` as Sealed;

export const secretRecord = (name: string, version: number): SecretRecord => ({
  kind: 'secret',
  tenant: acme,
  name,
  version,
  sealed: sealedAs(`${name}@${version}`),
  updatedAtMs: 1,
});

/** A container that has the secret in a variable and in a file. */
export const uses = (name: string, version: number): SecretUses => ({
  env: { TOKEN: { name, version } },
  files: { '/run/token': { name, version, mode: 0o400, uid: 0, gid: 0 } },
});

export const using = (name: string, version: number, more: Partial<ContainerRecord> = {}, called?: string) =>
  container({ secrets: uses(name, version), ...more }, called);

type Read = StateRead extends infer A ? (A extends StateRead ? Omit<A, 'rid' | 'budgetMs'> : never) : never;
type Write = WriteAsk extends infer A ? (A extends WriteAsk ? Omit<A, 'rid' | 'budgetMs' | 'op'> : never) : never;

export function secretWorld(records: readonly StateRecord[] = [], fleet: FleetView = fleetOf(fleetHost(h1))) {
  const state = stateOf(...records);
  let nowMs = 1_000_000;
  let seq = 2;
  const context = () => contextOf(fleet, ++nowMs);
  const asker = { rid: 'r', budgetMs: 1000 };
  const after = (changes: Changes): Changes => {
    apply(state, changes);
    return changes;
  };
  const all = (changes: Iterable<Changes>): Changes[] => {
    const made: Changes[] = [];
    for (const one of changes) made.push(after(one));
    return made.filter(({ records: changed, deletes }) => changed.length + deletes.length > 0);
  };
  const read = (ask: Read): Turn['reply'] => decideRead(state, { ...ask, ...asker }, context()).reply;
  const write = (ask: Write): Turn => {
    const turn = decideWrite(state, { ...ask, ...asker, op: operation() }, context(), undefined);
    after(turn.changes);
    return turn;
  };
  const nextOf = (name: string): number =>
    (bodyOf(read({ type: 'secret.material', tenant: acme, name })) as { data: { next: number } }).data.next;
  return {
    state,
    read,
    write,
    nextOf,
    record: (id: ContainerId): ContainerRecord => state.tenant(acme).containers.get(id)!,
    versions: (name: string): number[] => [...(state.tenant(acme).secrets.values.get(name)?.keys() ?? [])],
    put: (name: string, version = nextOf(name), more: { binary?: true; stage?: 'only' | 'over' } = {}) =>
      write({ type: 'secret.put', tenant: acme, name, version, sealed: sealedAs(`${name}@${version}`), ...more }),
    remove: (name: string) => write({ type: 'secret.remove', tenant: acme, name }),
    list: () => (bodyOf(read({ type: 'secret.list', tenant: acme })) as { data: unknown[] }).data,
    putUses: (id: ContainerId, secrets: Partial<ContainerSecrets>) =>
      write({ type: 'container.secrets.put', tenant: acme, id, secrets: { env: {}, files: {}, ...secrets } }),
    roll: () => all(rollSecrets(state, context(), fail)),
    tryAgain: () => all(tryAgain(state, context())),
    /** Reports the phase of the update under way, as the container's host. */
    tell: (
      id: ContainerId,
      phase: NonNullable<ReportItem['update']>['phase'] | undefined,
      seen: Observation = observation('running'),
    ) => {
      const record = state.tenant(acme).containers.get(id)!;
      const told = { since: record.update?.since ?? 0, reason: null, message: null };
      const update = phase === undefined ? {} : { update: { ...told, phase } };
      return after(observe(state, h1, 1, itemOf(record, { observation: seen, seq: ++seq, ...update }), context()));
    },
  };
}

const fail = (_record: ContainerRecord, error: unknown): never => {
  throw error;
};

export const bodyOf = (reply: Turn['reply']): unknown => JSON.parse(String(reply.body));
