/** Checks that the enrolled agent of a host has asked for a value (lib/nats/host-proof.ts). */
import Type from 'typebox';
import { decoder, DecodeError } from '../../lib/decode.ts';
import { hostUserName } from '../../lib/nats/host-credentials.ts';
import { unsealText } from '../../lib/nats/host-proof.ts';
import { isSignedBy } from '../../lib/nats/quick-pair.ts';
import { limits } from '../../schemas/limits.ts';
import type { Sender } from '../../schemas/wire/subjects.ts';
import type { HostProof, UnprovedAsk } from '../../schemas/wire/unseal.ts';
import type { HostIssuers } from './host-issuers.ts';

/** The claims of a user's JWT that name whose it is. */
const decodeClaims = decoder(
  Type.Object({
    iss: Type.String({ pattern: '^A[A-Z2-7]{55}$' }),
    sub: Type.String({ pattern: '^U[A-Z2-7]{55}$' }),
    name: Type.String(),
    exp: Type.Optional(Type.Number()),
    nats: Type.Object({ type: Type.Literal('user'), issuer_account: Type.Optional(Type.String()) }),
  }),
);

export interface Proving {
  /** As the subject of the ask names them. */
  readonly sender: Sender;
  readonly ask: UnprovedAsk;
  readonly proof: HostProof;
  readonly issuers: HostIssuers;
  readonly nowMs: number;
}

/** The fault of the proof, in words for the agent's log; `undefined` if it is valid. */
export function faultOfProof({ sender, ask, proof, issuers, nowMs }: Proving): string | undefined {
  const [head = '', body = '', signature = ''] = proof.jwt.split('.');
  let claims: ReturnType<typeof decodeClaims>;
  try {
    claims = decodeClaims(Buffer.from(body, 'base64url'));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return 'its credentials cannot be read';
  }
  const { iss, sub, name, exp = Infinity, nats } = claims;
  if (sub !== sender.user || name !== hostUserName(sender.host)) return 'its credentials are those of another agent';
  if (!issuers.has(iss, nats.issuer_account)) return 'its credentials were not issued by the account HOSTS';
  if (exp * 1000 + limits.unsealSkewMs < nowMs) return 'its credentials have expired';
  const aheadMs = proof.atMs - nowMs;
  if (Math.abs(aheadMs) > limits.unsealSkewMs)
    return `its clock is ${Math.round(aheadMs / 1000)} seconds ahead of the gateway's: set the clock of the machine`;
  if (!isSignedBy(iss, Buffer.from(`${head}.${body}`), signature)) return 'its credentials are forged';
  if (!isSignedBy(sub, unsealText(sender, ask, proof.atMs), proof.signature)) return 'the signature does not fit';
  return undefined;
}
