/** The filters of the overview, as owners are asked. Pure. */
import type { CallOf } from '../call.ts';

type Lists = Readonly<Record<string, readonly string[] | undefined>>;
type Given<T> = { [K in keyof T]?: string[] };

/** Those that are there. */
export const given = <T extends Lists>(lists: T): Given<T> =>
  Object.fromEntries(
    Object.entries(lists).flatMap(([name, values]) => (values === undefined ? [] : [[name, [...values]]])),
  ) as Given<T>;

export function filtersOf({ query }: CallOf<'container.overview' | 'container.watch' | 'log.list'>) {
  const { status, name, project, host_key: host, label: labels } = query;
  return { only: given({ status, name, project, host }), ...given({ labels }) };
}
