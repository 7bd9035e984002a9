/** The decision of every ask. Pure: no I/O, no clock, no cryptography; a decision that throws has changed nothing. */
import type { Ask, ReadAsk, WriteAsk } from '../schemas/messages.ts';
import * as container from './container/decide.ts';
import * as host from './host/decide.ts';
import type { PartitionView } from './state.ts';
import * as tenant from './tenant/decide.ts';
import type { Turn, TurnContext } from './turn.ts';

/** What is made before the turn for an ask that needs it: `host.enrol`. */
export interface Prepared {
  readonly enrolment: { readonly cluster: string; readonly natsUrls: readonly string[]; readonly jwt: string };
}

export const isWrite = (ask: Ask): ask is WriteAsk => 'op' in ask;

const unreachable = (ask: never): never => {
  throw new Error(`no decision for ${JSON.stringify(ask)}`);
};

export function decideRead(state: PartitionView, ask: ReadAsk, context: TurnContext): Turn {
  switch (ask.type) {
    case 'container.list':
      return container.list(state, ask, context);
    case 'container.get':
      return container.get(state, ask, context);
    case 'container.status':
      return container.status(state, ask, context);
    case 'container.trace':
      return container.trace(state, ask);
    case 'container.inspect':
      return container.inspect(state, ask, context);
    case 'tenant.quota':
      return tenant.quota(state, ask);
    case 'tenant.get':
      return tenant.get(state, ask);
    case 'host.get':
      return host.get(state, ask, context);
    case 'host.list':
      return host.list(state, context);
    case 'revocation.list':
      return tenant.revocations(state, context);
    default:
      return unreachable(ask);
  }
}

export function decideWrite(
  state: PartitionView,
  ask: WriteAsk,
  context: TurnContext,
  prepared: Prepared | undefined,
): Turn {
  switch (ask.type) {
    case 'container.create':
      return container.create(state, ask, context);
    case 'container.start':
      return container.start(state, ask, context);
    case 'container.stop':
      return container.stop(state, ask, context);
    case 'container.delete':
      return container.remove(state, ask, context);
    case 'container.operate':
      return container.operate(state, ask, context);
    case 'tenant.put':
      return tenant.put(state, ask, context);
    case 'tenant.revoke':
      return tenant.revoke(state, ask, context);
    case 'host.create':
      return host.create(state, ask, context);
    case 'host.join_token':
      return host.joinToken(state, ask, context);
    case 'host.update':
      return host.update(state, ask, context);
    case 'host.remove':
      return host.remove(state, ask, context);
    case 'host.enrol':
      if (prepared === undefined) throw new Error('an enrolment needs its key signed before the turn');
      return host.enrol(state, ask, prepared.enrolment, context);
    default:
      return unreachable(ask);
  }
}
