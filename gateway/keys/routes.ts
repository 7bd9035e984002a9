/** Keys of tenants, and the cluster's own keys that sign them (ADR 41). */
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import type { SigningKeyView } from '../../schemas/api/keys/signing-key.ts';
import type { Revocation } from '../../schemas/api/tenant.ts';
import type { KeyId } from '../../schemas/ids.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import type { SigningKeyPage } from '../../schemas/wire/answers.ts';
import { revocationOf } from '../auth/revocations.ts';
import { firstMissing } from '../auth/scopes.ts';
import { succeeded, tenantOf, written, type Call, type HandlerOf, type Handlers, type Writer } from '../call.ts';
import { created, invalid, missingScope, ok } from '../http/respond.ts';
import type { SigningKeys } from './signing-keys.ts';

const viewOf = ({ id, sealed, insertedAtMs, untilMs }: SigningKeyPage[number]): SigningKeyView => ({
  id,
  current: sealed !== null && untilMs === null,
  inserted_at: insertedAtMs === null ? null : timestamp(insertedAtMs),
  expires_at: untilMs === null ? null : timestamp(untilMs),
});

/** Newest first: an id begins with the time that it was made at. */
const viewsOf = (page: SigningKeyPage): SigningKeyView[] =>
  [...page].sort((one, other) => (one.id < other.id ? 1 : -1)).map(viewOf);

const days = (ms: number): string => `${Math.floor(ms / 86_400_000)} days`;

export interface KeyRoutesOptions extends Writer {
  readonly ask: AskOwner;
  readonly signingKeys: SigningKeys;
  readonly announceRevocation: (revocation: Revocation) => void;
  readonly newKeyId: () => KeyId;
  /** Tokens that live longer are refused. */
  readonly tokenLifeMaxMs: number;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export function keyRoutes(options: KeyRoutesOptions) {
  const { ask, signingKeys, clock, tokenLifeMaxMs } = options;
  const asker = (call: Call) => ({ tenant: tenantOf(call), ...call.origin });
  const ofRequest = ({ origin, deadlineMs }: Call) => ({ origin, deadlineMs });

  const list: HandlerOf<'key.list'> = (call) => ask('read', { type: 'key.list', ...asker(call) }, call.deadlineMs);

  /** Nothing is stored before the token is signed, and no token leaves before the commit (A3). */
  const create: HandlerOf<'key.create'> = async (call) => {
    const { identity, body } = call;
    if (identity === undefined) throw new Error('key.create: no identity');
    const nowMs = clock.nowMs();
    const latestMs = nowMs + tokenLifeMaxMs;
    const expiresAtMs = body.expiresAtMs ?? latestMs;
    if (expiresAtMs > latestMs) {
      return invalid({ expires_at: [`must be within ${days(tokenLifeMaxMs)}, the longest life of a token here`] });
    }
    const missing = firstMissing(identity.scopes, body.scopes);
    if (missing !== undefined) return missingScope(missing);
    const issuedAtS = wholeSeconds(nowMs);
    const made = {
      id: options.newKeyId(),
      name: body.name,
      scopes: body.scopes,
      subject: identity.subject,
      issuedAtS,
      expiresAtS: Math.min(wholeSeconds(expiresAtMs), issuedAtS + wholeSeconds(tokenLifeMaxMs)),
    };
    const signed = await signingKeys.sign({ ...made, tenant: tenantOf(call) }, ofRequest(call));
    if ('code' in signed) return signed;
    const write = { type: 'key.create', tenant: tenantOf(call), made } as const;
    const kept = call.keep?.(made.id, { token: signed.token }) ?? call;
    const question = { ...write, ...written(options, kept) };
    const outcome = await ask('write', question, call.deadlineMs);
    if (!succeeded(outcome)) return outcome;
    return created({ ...decodeAnswer('key.create', outcome.body).data, token: signed.token }, outcome);
  };

  const remove: HandlerOf<'key.remove'> = async (call) => {
    const key = call.params.key_id;
    const tenant = tenantOf(call);
    const revocation = revocationOf(tenant, { jti: key }, { nowMs: clock.nowMs(), tokenLifeMaxMs });
    const write = { type: 'key.remove', tenant, key, revocation } as const;
    const question = { ...write, ...written(options, call) };
    const outcome = await ask('write', question, call.deadlineMs);
    if (!succeeded(outcome)) return outcome;
    const { untilMs } = decodeAnswer('key.remove', outcome.body).data;
    // After the commit (A3): a revocation that is announced but not stored could be lost.
    options.announceRevocation({ ...revocation, untilMs });
    return { code: 'no_content', body: '' };
  };

  const signing: HandlerOf<'signing_key.list'> = async () => {
    const page = await signingKeys.list();
    return 'code' in page ? page : ok(viewsOf(page));
  };

  const rotate: HandlerOf<'signing_key.rotate'> = async (call) => {
    const page = await signingKeys.rotate(
      { ...ofRequest(call), cause: call.cause },
      { endOthers: call.query.end_others },
    );
    return 'code' in page ? page : created(viewsOf(page));
  };

  const jwks: HandlerOf<'jwks'> = async () => {
    const set = await signingKeys.published();
    return 'code' in set ? set : { code: 'ok', body: JSON.stringify(set) };
  };

  return {
    'key.list': list,
    'key.create': create,
    'key.remove': remove,
    'signing_key.list': signing,
    'signing_key.rotate': rotate,
    jwks,
  } satisfies Partial<Handlers>;
}
