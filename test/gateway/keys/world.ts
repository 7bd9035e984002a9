/** Gateways' signing keys over the decisions of one owner. */
import { SigningKeys } from '../../../gateway/keys/signing-keys.ts';
import { Vault } from '../../../gateway/vault/vault.ts';
import type { Outcome, Question } from '../../../lib/rpc/partition-client.ts';
import type { OperationId } from '../../../schemas/ids.ts';
import { secretWorld } from '../../actors/support/secrets.ts';
import { quietLog } from '../support.ts';

export const vaultOf = (id = 'k1', byte = 1) => new Vault([{ id, key: Buffer.alloc(32, byte) }]);
export const request = { origin: { rid: 'r' }, deadlineMs: 1e9 };

export function signingStage(before: (question: Question) => Outcome | undefined = () => undefined) {
  const world = secretWorld();
  let count = 0;
  let nowMs = 1_000_000;
  const ask = (question: Question): Outcome => {
    const given = before(question);
    if (given !== undefined) return given;
    const { reply } = 'op' in question ? world.write(question) : { reply: world.read(question as never) };
    return { code: reply.code, body: String(reply.body) };
  };
  return {
    world,
    ask,
    pass: (ms: number) => void (nowMs += ms),
    /** `vault`: null for none. */
    gateway: (vault: Vault | null = vaultOf(), tokenLifeMaxMs = 60_000) =>
      new SigningKeys({
        vault: vault ?? undefined,
        ask: (_lane, question) => Promise.resolve(ask(question)),
        tokenLifeMaxMs,
        newKeyId: () => `key-${++count}`,
        newOperationId: () => `operation-${++count}-0000000` as OperationId,
        clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
        log: quietLog,
      }),
  };
}
