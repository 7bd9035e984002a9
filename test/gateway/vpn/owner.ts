/**
 * The owner of every partition in one memory: it decides with the actors' own code, and a test can
 * step in between.
 */
import { decideRead, decideWrite } from '../../../actors/domain/decide.ts';
import { PartitionState } from '../../../actors/domain/state.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { apply, contextOf, fleetOf, noLedger } from '../../actors/support/records.ts';
import { revocationsOf, type AnswerOf } from '../support.ts';

export interface DecidingOwner {
  (ask: Ask): Promise<AnswerOf>;
  readonly state: PartitionState;
  /**
   * Asks that match wait until this is done; it is done once, for a gateway repeats an ask that
   * takes long.
   */
  before(matches: (ask: Ask) => boolean, act: () => Promise<void>): void;
}

export function decidingOwner(): DecidingOwner {
  const state = new PartitionState(noLedger, { epoch: 0, incarnation: 0 });
  let pause: { matches: (ask: Ask) => boolean; act: () => Promise<void>; done?: Promise<void> } | undefined;
  const owner = async (ask: Ask): Promise<AnswerOf> => {
    if (pause?.matches(ask) === true) await (pause.done ??= pause.act());
    if (ask.type === 'revocation.list') return revocationsOf([]);
    if (ask.type === 'event.recent' || ask.type === 'audit.recent') throw new Error('no events are kept here');
    const context = contextOf(fleetOf(), Date.now());
    if (!('op' in ask)) return decideRead(state, ask, context).reply;
    const { reply, changes } = decideWrite(state, ask, context, undefined);
    apply(state, changes);
    return reply;
  };
  return Object.assign(owner, {
    state,
    before: (matches: (ask: Ask) => boolean, act: () => Promise<void>) => void (pause = { matches, act }),
  });
}
