/** The keys of a folder as a table. Pure. */
import { tableOf } from '../../cli/terminal/table.ts';
import type { Text } from '../../cli/terminal/output.ts';
import type { IssuedKey } from './issued.ts';
import type { NatsIdentity } from './nats-identity.ts';

const dayOf = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 10);

/** `current`: the one in the folder's files. `earlier`: valid, and there is a newer one. */
function stateOf({ name, key, exp, revoked }: IssuedKey, current: ReadonlyMap<string, string>, nowS: number): string {
  if (revoked !== undefined) return `revoked ${dayOf(revoked)}`;
  if (exp !== undefined && exp <= nowS) return 'expired';
  return current.get(name) === key ? 'current' : 'earlier';
}

/**
 * @param connections by key, the names of those that are connected by it; absent if they are
 *   unknown
 */
export function tableOfKeys(
  { issued, current }: Pick<NatsIdentity, 'issued' | 'current'>,
  connections: ReadonlyMap<string, readonly string[]> | undefined,
  nowS: number,
): Text {
  const rows = issued
    .toSorted((one, other) => one.name.localeCompare(other.name) || one.iat - other.iat)
    .map((each) => [
      each.name,
      each.key,
      dayOf(each.iat),
      each.exp === undefined ? 'never' : dayOf(each.exp),
      stateOf(each, current, nowS),
      ...(connections === undefined ? [] : [String(connections.get(each.key)?.length ?? 0)]),
    ]);
  const columns = ['name', 'key', 'issued', 'expires', 'state', ...(connections === undefined ? [] : ['connected'])];
  return tableOf(columns, rows, 'no keys');
}
