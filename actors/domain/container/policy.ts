/** Decides what a tenant asks of a container's policy (ADR 36). Pure. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { isSameForEngine, policyOf, policyShown, policyStored, textOfPolicy } from '../../../schemas/api/policy.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, repeatable, type Turn, type TurnContext } from '../turn.ts';
import { change, find, doorbellOnly } from './decide.ts';
import { changed, eventOf, withNext } from './transitions.ts';
import { versionOf } from './updates.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

export function get(state: PartitionView, ask: Of<'policy.get'>): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(data('ok', policyShown(policyOf(found.record))));
}

/**
 * Idempotent. A check that the engine carries out is part of the engine's container: another one is
 * an update.
 */
export function put(state: PartitionView, { policy, ...ask }: Of<'policy.put'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  const reply = repeatable('ok', policyShown(policy));
  if (textOfPolicy(policy) === textOfPolicy(policyOf(record))) return answer(reply, doorbellOnly(record));
  if (!isSameForEngine(policy, policyOf(record))) {
    const version = { ...versionOf(record), policy };
    return change(state, record, version, 'policy_changed', context, () => reply);
  }
  const next = withNext(record, context, { policy, ...policyUnder(record, policy) });
  return answer(reply, changed(next, [eventOf('policy_changed', next, context)]));
}

/** The version that an update would bring back is under the policy too, but for its own check. */
export function policyUnder({ update, ...record }: ContainerRecord, policy: ContainerRecord['policy']) {
  if (update?.previous === undefined || policy === undefined) return {};
  const { previous } = update;
  const hasSameCheck = isSameForEngine(policyOf(record), previous.policy);
  const { health } = policyShown(hasSameCheck ? policy : previous.policy);
  const under = policyStored({ ...policyShown(policy), health });
  return { update: { ...update, previous: { ...previous, policy: under } } };
}
