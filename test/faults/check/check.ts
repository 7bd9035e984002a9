/** Judges a history: what is wrong with it, in words, with the operations that show it. */
import { grouped, itemsOf } from './items.ts';
import { describe, judge, type Finding } from './judge.ts';
import type { History, Operation } from './history.ts';
import type { Item, TenantState } from './model.ts';
import { search } from './search.ts';

export type { Finding, Rule } from './judge.ts';

/**
 * Returns nothing if each tenant's operations could have happened one after another, with none lost
 * and none done twice.
 */
export function check(history: History): Finding[] {
  const findings = judge(history);
  for (const [tenant, operations] of grouped(history.operations, (operation) => operation.tenant)) {
    const items = itemsOf(operations);
    const verdict = search(items, history);
    switch (verdict.kind) {
      case 'linearizable':
        break;
      case 'undecided':
        findings.push({
          rule: 'undecided',
          tenant,
          words: `too many orders are possible at ${describe(verdict.item.operation)}`,
          operations: [verdict.item.operation],
        });
        break;
      case 'broken': {
        const { item, concurrent, states } = verdict;
        findings.push({
          rule: 'not linearizable',
          tenant,
          words: `no order of the operations explains ${describe(item.operation)}; ${stateText(states)}`,
          operations: windowOf(item, concurrent, items),
        });
        break;
      }
    }
  }
  return findings;
}

/** A finding for the terminal: the rule, the words, and the operations below them. */
export const explain = ({ rule, tenant, words, operations }: Finding): string =>
  [`${rule}, ${tenant}: ${words}`, ...operations.map((operation) => `  ${describe(operation)}`)].join('\n');

function stateText([state, ...others]: readonly TenantState[]): string {
  if (state === undefined) return 'nothing was there';
  const containers = [...state.containers].map(
    ([id, { name, desired, generation, host, version, update }]) =>
      `${name}:${version.tag} (${id}) ${desired} generation ${generation} on ${host}, update ${update}`,
  );
  const more = others.length === 0 ? '' : ` (or one of ${others.length} others)`;
  return `before it there were: ${containers.join(', ') || 'none'}${more}`;
}

const aboutIds = ({ request, result }: Operation): readonly string[] => [
  ...('id' in request ? [request.id] : []),
  ...(result.kind === 'ok' && result.told.of === 'container' ? [result.told.container.id] : []),
  ...('name' in request ? [`name ${request.name}`] : []),
];

/** The operations under way then, and the last writes before about the same containers. */
function windowOf(item: Item, concurrent: readonly Item[], items: readonly Item[]): readonly Operation[] {
  const near = concurrent.filter(({ untilMs }) => untilMs !== Infinity);
  const ids = new Set(aboutIds(item.operation));
  const isAbout = ({ operation }: Item): boolean => ids.size === 0 || aboutIds(operation).some((id) => ids.has(id));
  const doubtful = concurrent.filter((other) => other.untilMs === Infinity && isAbout(other)).slice(-windowBefore);
  const before = items
    .filter((other) => other.is === 'write' && other.untilMs < item.fromMs && isAbout(other))
    .sort((a, b) => a.untilMs - b.untilMs)
    .slice(-windowBefore);
  const operations = new Set([...before, ...doubtful, ...near, item].map(({ operation }) => operation));
  return [...operations].sort((a, b) => a.invokedMs - b.invokedMs);
}

const windowBefore = 6;
