/**
 * The proof to a gateway that the enrolled agent of a host asks for a value (ADR 37). The subject
 * of the ask does not prove it: actors and backups use the account CP, where anyone may publish on
 * it. A proof is of no use to those who repeat it, because the answer is sealed to the key that was
 * signed.
 */
import type { Sender } from '../../schemas/wire/subjects.ts';
import type { HostProof, UnprovedAsk } from '../../schemas/wire/unseal.ts';
import { quickPair } from './quick-pair.ts';

/** The signed text: each field on a line of its own, after the name of this form. */
export function unsealText({ host, user }: Sender, ask: UnprovedAsk, atMs: number): Buffer {
  const { tenant = '', id = '', key } = ask;
  return Buffer.from(['longshore-unseal-1', host, user, tenant, id, key, ...wordsOf(ask), atMs, ''].join('\n'));
}

function wordsOf({ secret, file, peer, network, registry = '' }: UnprovedAsk): readonly (string | number)[] {
  if (secret !== undefined) return ['secret', secret.name, secret.version];
  if (file !== undefined) return ['file', file];
  if (peer !== undefined) return ['peer', peer];
  return network === undefined ? ['login', registry] : ['network', network];
}

export interface ProverParts {
  readonly sender: Sender;
  readonly seed: Uint8Array;
  readonly jwt: () => string;
  readonly nowMs: () => number;
}

export function createProver({ sender, seed, jwt, nowMs }: ProverParts): (ask: UnprovedAsk) => HostProof {
  const pair = quickPair(seed);
  return (ask) => {
    const atMs = nowMs();
    const signature = pair.sign(unsealText(sender, ask, atMs));
    return { atMs, jwt: jwt(), signature: Buffer.from(signature).toString('base64url') };
  };
}
