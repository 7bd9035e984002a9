/**
 * The decision of every ask. Pure: no I/O, no clock, no cryptography; a decision that throws has
 * changed nothing.
 */
import type { Ask, WriteAsk } from '../../schemas/wire/asks.ts';
import type { StateRead } from '../runtime/domain.ts';
import * as answers from './answers/answers.ts';
import { create } from './container/create.ts';
import * as container from './container/decide.ts';
import { find } from './container/find.ts';
import * as file from './file/files.ts';
import * as metadata from './container/metadata.ts';
import * as overview from './container/overview.ts';
import * as policy from './container/policy.ts';
import * as spec from './container/spec.ts';
import * as rollback from './container/rollback.ts';
import { session } from './container/session.ts';
import * as host from './host/decide.ts';
import { drain } from './host/drain.ts';
import * as network from './network/decide.ts';
import * as peer from './peer/decide.ts';
import * as login from './secret/logins.ts';
import * as reseal from './secret/reseal.ts';
import * as secret from './secret/secrets.ts';
import { unseal, unsealNetwork, unsealPeer } from './secret/unseal.ts';
import * as uses from './secret/uses.ts';
import * as signing from './signing/keys.ts';
import { conditional, headed } from './preconditions/decide.ts';
import type { PartitionView } from './state.ts';
import * as tenant from './tenant/decide.ts';
import * as tenantNetwork from './tenant/network.ts';
import * as key from './tenant/keys.ts';
import { answer, data, type Prepared, type Turn, type TurnContext } from './turn.ts';

export const isWrite = (ask: Ask): ask is WriteAsk => 'op' in ask;

const unreachable = (ask: never): never => {
  throw new Error(`no decision for ${JSON.stringify(ask)}`);
};

export const decideRead = (state: PartitionView, ask: StateRead, context: TurnContext): Turn =>
  headed(state, ask, read(state, ask, context));

function read(state: PartitionView, ask: StateRead, context: TurnContext): Turn {
  switch (ask.type) {
    case 'container.list':
      return container.list(state, ask, context);
    case 'container.get':
      return container.get(state, ask, context);
    case 'container.overview':
      return overview.overview(state, ask, context);
    case 'container.watch':
      return overview.watch(state, ask, context);
    case 'metadata.get':
      return metadata.get(state, ask);
    case 'metadata.list':
      return metadata.list(state, ask);
    case 'spec.get':
      return spec.get(state, ask);
    case 'spec.plan':
      return conditional(state, ask, spec.plan(state, ask, context));
    case 'policy.get':
      return policy.get(state, ask);
    case 'container.status':
      return container.status(state, ask, context);
    case 'container.versions':
      return rollback.list(state, ask);
    case 'container.trace':
      return container.trace(state, ask);
    case 'container.session':
      return session(state, ask, context);
    case 'container.inspect':
      return container.inspect(state, ask, context);
    case 'container.find':
      return find(state, ask, context);
    case 'tenant.list':
      return tenant.list(state, ask);
    case 'tenant.quota':
      return tenant.quota(state, ask, context);
    case 'tenant.hosts':
      return tenant.hosts(state, ask, context);
    case 'tenant.network':
      return tenantNetwork.network(state, ask, context);
    case 'tenant.names':
      return tenantNetwork.names(state, ask, context);
    case 'tenant.get':
      return tenant.get(state, ask);
    case 'host.get':
      return host.get(state, ask, context);
    case 'host.drain':
      return drain(state, ask, context);
    case 'host.list':
      return host.list(state, ask, context);
    case 'revocation.list':
      return tenant.revocations(state, ask, context);
    case 'peer.list':
      return peer.list(state, ask, context);
    case 'peer.get':
      return peer.get(state, ask, context);
    case 'peer.check':
      return peer.check(state, ask, context);
    case 'peer.material':
      return peer.material(state, ask, context);
    case 'token.resolve':
      return peer.resolve(state, ask, context);
    case 'peer.link.list':
      return peer.linkList(state, ask, context);
    case 'link.resolve':
      return peer.linkResolve(state, ask, context);
    case 'peer.count':
      return peer.count(state, context);
    case 'network.get':
      return network.get(state, ask);
    case 'network.list':
      return network.list(state, ask);
    case 'network.material':
      return network.material(state, ask);
    case 'network.leases':
      return network.leases(state, ask);
    case 'network.revocations':
      return network.revocations(state, ask, context);
    case 'secret.stale':
      return reseal.stale(state, ask);
    case 'secret.list':
      return secret.list(state, ask);
    case 'secret.material':
      return secret.material(state, ask);
    case 'peer.unseal':
      return unsealPeer(state, ask, context);
    case 'network.unseal':
      return unsealNetwork(state, ask, context);
    case 'secret.unseal':
      return unseal(state, ask, context);
    case 'login.list':
      return login.list(state, ask);
    case 'login.material':
      return login.material(state, ask);
    case 'file.get':
      return file.get(state, ask, context);
    case 'container.secrets':
      return uses.get(state, ask);
    case 'answer.get':
      return answers.get(state, ask, context);
    case 'key.list':
      return key.list(state, ask);
    case 'signing_key.list':
      return signing.list(state);
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
  const refusal = answers.refusalOf(state, ask, context);
  if (refusal !== undefined) return refusal;
  const decided = conditional(state, ask, write(state, ask, context, prepared));
  const turn = headed(state, ask, rollback.withVersions(state, ask, decided, context));
  return answers.withKept(state, ask, turn, context);
}

function write(state: PartitionView, ask: WriteAsk, context: TurnContext, prepared: Prepared | undefined): Turn {
  switch (ask.type) {
    case 'container.create':
      return create(state, ask, context);
    case 'container.update':
      return container.update(state, ask, context);
    case 'metadata.put':
      return metadata.put(state, ask, context);
    case 'spec.put':
      return file.refusalOfMissing(state, ask) ?? spec.put(state, ask, context);
    case 'spec.create':
      return file.refusalOfMissing(state, ask) ?? spec.create(state, ask, context);
    case 'policy.put':
      return policy.put(state, ask, context);
    case 'container.rollback':
      return rollback.rollback(state, ask, context);
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
    case 'host.renew':
      if (prepared === undefined) throw new Error('a renewal needs its key signed before the turn');
      return host.renew(state, ask, prepared, context);
    case 'peer.create':
      return peer.create(state, ask, context);
    case 'peer.update':
      return peer.update(state, ask, context);
    case 'peer.rotate':
      return peer.rotate(state, ask, context);
    case 'peer.certify':
      return peer.certify(state, ask, context);
    case 'peer.password':
      return peer.password(state, ask, context);
    case 'peer.token.create':
      return peer.tokenCreate(state, ask, context);
    case 'peer.token.remove':
      return peer.tokenRemove(state, ask, context);
    case 'peer.link.create':
      return peer.linkCreate(state, ask, context);
    case 'peer.link.remove':
      return peer.linkRemove(state, ask, context);
    case 'peer.link.redeem':
      return peer.linkRedeem(state, ask, context);
    case 'peer.remove':
      return peer.remove(state, ask, context);
    case 'peer.forgo':
      return peer.tombstoneAbsent(state, ask, context);
    case 'network.create':
      return network.create(state, ask, context);
    case 'network.put':
      return network.put(state, ask, context);
    case 'network.serve':
      return network.serve(state, ask, context);
    case 'network.certify':
      return network.certify(state, ask, context);
    case 'network.remove':
      return network.remove(state, ask);
    case 'network.reserve':
      return network.reserve(state, ask, context);
    case 'network.release':
      return network.release(state, ask);
    case 'network.learn':
      return network.learn(state, ask, context);
    case 'secret.replace':
      return reseal.replace(state, ask, context);
    case 'secret.put':
      return secret.put(state, ask, context);
    case 'secret.remove':
      return secret.remove(state, ask, context);
    case 'file.put':
      return file.put(state, ask, context);
    case 'login.put':
      return login.put(state, ask, context);
    case 'login.remove':
      return login.remove(state, ask, context);
    case 'container.secrets.put':
      return uses.put(state, ask, context);
    case 'key.create':
      return key.create(state, ask, context);
    case 'key.remove':
      return key.remove(state, ask, context);
    // The line of the audit is all that these asks make (audit/lines.ts).
    case 'audit.note':
    case 'audit.note_operator':
      return answer(data('ok', null));
    case 'signing_key.put':
      return signing.put(state, ask, context);
    default:
      return unreachable(ask);
  }
}
