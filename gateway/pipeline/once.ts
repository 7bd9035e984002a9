/**
 * `Idempotency-Key`: a POST of a tenant that is sent again within 24 hours gets the answer of the
 * first time. The owner keeps the answer in the commit of the write. What it shows of secrets is
 * sealed here, because owners can open nothing.
 */
import { createHash } from 'node:crypto';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import { splitHead } from '../../schemas/api/etag.ts';
import type { Once } from '../../schemas/records/kept-answer.ts';
import type { KeptPlace, Sealed } from '../../schemas/records/sealed.ts';
import { succeeded, tenantOf, type Call, type Handled } from '../call.ts';
import { conflict, invalid, type Result } from '../http/respond.ts';
import { SealError, type Vault } from '../vault/vault.ts';
import type { AppRoute } from './app-route.ts';

/** Dependencies of kept answers. */
export interface OnceOptions {
  readonly ask: AskOwner;
  /** `undefined` if this gateway has no vault keys; it then makes no secrets. */
  readonly vault: Vault | undefined;
}

/** Visible ASCII. */
const keyPattern = /^[\x21-\x7e]{1,255}$/;

export const wrongKey = invalid({ 'Idempotency-Key': ['must be 1 to 255 visible ASCII characters'] });
const sealedByOther = conflict(
  'key_used',
  'the answer to the first request with this key was sealed under a key that is gone; send it with another one',
);

/** The key of a request, undefined without one, or the refusal of a malformed one. */
export function keyIn({ exchange }: Pick<Call, 'exchange'>): string | undefined | Result {
  const { idempotencyKey: key } = exchange.head.headers;
  return key === undefined || keyPattern.test(key) ? key : wrongKey;
}

const hashOf = (...parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url');

const placeOf = (call: Call, { key }: Once): KeptPlace => ({
  of: 'answer',
  tenant: tenantOf(call),
  key: Buffer.from(key).toString('base64url'),
});

const askerOf = ({ identity }: Call): string => hashOf(identity?.subject, identity?.tokenName);

/** The same request, whose write seals the secrets of its answer for who sends it again. */
function keeping(call: Call, once: Once, vault: Vault | undefined): Call {
  const keep = (of: string, shown: object): Call => {
    if (vault === undefined) throw new Error('a secret was made without a vault');
    const sealed = vault.seal(placeOf(call, once), JSON.stringify(shown));
    const secret = { by: askerOf(call), sealed, of };
    return { ...call, origin: { ...call.origin, repeatable: { ...once, secret } } };
  };
  return { ...call, origin: { ...call.origin, repeatable: once }, keep };
}

/**
 * The answer to the first request with this key, or why it is not given again; `undefined` if this
 * is the first.
 */
async function earlier(route: AppRoute, call: Call, once: Once, { ask, vault }: OnceOptions) {
  const question = { type: 'answer.get', tenant: tenantOf(call), ...once, by: askerOf(call), ...call.origin } as const;
  const outcome = await ask('read', question, call.deadlineMs);
  if (!succeeded(outcome)) return outcome;
  const { data } = decodeAnswer('answer.get', outcome.body);
  if (data === null) return undefined;
  const { body, head } = splitHead(data.body);
  const shown = data.sealed === null ? body : merged(body, opened(placeOf(call, once), data.sealed, vault));
  return shown === undefined
    ? sealedByOther
    : { code: route.success, body: shown, ...(head === undefined ? {} : { head }) };
}

function opened(place: KeptPlace, sealed: Sealed, vault: Vault | undefined): string | undefined {
  try {
    return vault?.open(place, sealed);
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

/** The owner's view with the secrets behind it, as handlers write it; `view: null` has no view. */
function merged(body: string, secrets: string | undefined): string | undefined {
  if (secrets === undefined) return undefined;
  const { view, ...shown } = JSON.parse(secrets) as { view?: null };
  const { data } = JSON.parse(body) as { data: object };
  return JSON.stringify({ data: { ...(view === null ? {} : data), ...shown } });
}

const isDone = ({ code }: Pick<Result, 'code'>): boolean => succeeded({ code, body: '' });
const forgotten = conflict(
  'key_used',
  'a request with this key was executed already, and such an answer is not kept: send it with another one',
);

/** Runs the handler, unless the request was executed before. */
export async function onlyOnce(route: AppRoute, call: Call, key: string, options: OnceOptions): Promise<Handled> {
  const once: Once = { key, request: hashOf(route.name, call.params, call.query, call.body) };
  const before = await earlier(route, call, once, options);
  if (before !== undefined) return route.forgets === true && isDone(before) ? forgotten : before;
  const handled = await route.handler(keeping(call, once, options.vault));
  if (handled === 'streamed' || isDone(handled) || route.forgets === true) return handled;
  // The same request may have come twice at one time. What the other made is then why this one was
  // refused: its key was used, or the name was taken.
  return (await earlier(route, call, once, options)) ?? handled;
}
