/**
 * Asks the control plane for sealed values: secrets of the containers that this host runs, logins
 * of their registries, and keys of the VPN networks that it serves (ADR 38). One ask has one
 * answer; after an ask without an answer, all asks pause for a while, so that a control plane that
 * is away keeps nobody waiting.
 */
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createSemaphore } from '../../lib/semaphore.ts';
import { backoffMs, type BackoffBounds } from '../../lib/time/backoff.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import type { SecretUse } from '../../schemas/api/secret.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { UnsealAnswer, type HostProof, type UnprovedAsk } from '../../schemas/wire/unseal.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import type { Metrics } from '../metrics.ts';
import type { VpnKeyOf } from '../network/vpn.ts';
import type { Request } from './connection.ts';

const decodeAnswer = messageDecoder(UnsealAnswer);

/** The container that needs a value. */
export interface Needing {
  readonly tenant: TenantId;
  readonly id: ContainerId;
}

/** A value that a container needs. */
export type Needed = Needing &
  ({ readonly secret: SecretUse } | { readonly registry: string } | { readonly file: string });

export type Unsealed =
  /** `null` if the tenant has no login for the registry. */
  | { readonly kind: 'box'; readonly box: string | null }
  | { readonly kind: 'refused'; readonly message: string }
  /** It cannot be decided now. */
  | { readonly kind: 'unavailable'; readonly message: string };

/** Never rejects. */
export type Unseal = (what: Needed | VpnKeyOf) => Promise<Unsealed>;

export interface UnsealParts {
  /** The public key that answers are sealed to. */
  readonly key: string;
  readonly sender: Sender;
  /** The proof that this agent asks. */
  readonly prove: (ask: UnprovedAsk) => HostProof;
  readonly request: Request;
  readonly backoff: BackoffBounds;
  /** A clock that never steps. */
  readonly steadyMs: () => number;
  readonly metrics: Pick<Metrics, 'unseal'>;
  readonly log: Log;
}

const silent = 'the control plane does not answer';

export function createUnseal({ key, sender, prove, request, backoff, steadyMs, metrics, log }: UnsealParts): Unseal {
  const semaphore = createSemaphore(limits.concurrentUnseals);
  let failures = 0;
  let restUntilMs = 0;

  const ask = async (what: Needed | VpnKeyOf): Promise<Unsealed> => {
    if (steadyMs() < restUntilMs) return { kind: 'unavailable', message: silent };
    const asked: UnprovedAsk = { v: 1, ...protocolFields, ...what, key };
    try {
      const subject = subjects.hostUnseal(sender);
      const message = JSON.stringify({ ...asked, proof: prove(asked) });
      const answer = decodeAnswer(await request(subject, message, limits.unsealTimeoutMs));
      failures = 0;
      if (answer.ok) return { kind: 'box', box: answer.box };
      const why = answer.message ?? `the control plane answers “${answer.error}”`;
      return { kind: answer.error === 'unavailable' ? 'unavailable' : 'refused', message: why };
    } catch (error) {
      log.debug('unseal_failed', { of: what, error });
      restUntilMs = steadyMs() + backoffMs(failures, backoff);
      failures += 1;
      return { kind: 'unavailable', message: silent };
    }
  };

  return (what) =>
    semaphore.run(async () => {
      const answer = await ask(what);
      metrics.unseal(answer.kind === 'box' ? 'answered' : answer.kind);
      return answer;
    });
}
