/** Handlers that work without a provider: who is signed in, sign-out, one-time links. */
import { createHash } from 'node:crypto';
import { readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { isSessionId } from '../../schemas/api/keys/session-id.ts';
import { OneTimeLink } from '../../schemas/api/keys/session.ts';
import type { Gate } from '../auth/gate.ts';
import { unauthenticated } from '../auth/gate.ts';
import type { HandlerOf } from '../call.ts';
import { seeOther } from '../http/html.ts';
import { forbidden } from '../http/refusals.ts';
import { conflict, failure } from '../http/respond.ts';
import type { Cookies } from './cookies.ts';
import { signedInPage, signedOutPage } from './pages.ts';
import type { PersonSessions } from './sessions.ts';

export interface SessionHandlerOptions {
  /** Empty where no public URL is configured: then links begin with the path. */
  readonly base: string;
  readonly gate: Pick<Gate, 'admit'>;
  readonly cookies: Cookies;
  readonly sessions: PersonSessions;
  /** True if an identity provider is configured. */
  readonly canSignIn: boolean;
  /** `undefined` without one-time links. */
  readonly linkFolder: string | undefined;
  readonly nowMs: () => number;
}

const decodeLink = decoder(OneTimeLink);
const usedLink = failure('not_found', 'this link was used already, or is too old; "npm start" prints a new one');

/** The link with this code, which is gone then: of several who come with it, one removes it. */
async function takeLink(folder: string, code: string): Promise<OneTimeLink | undefined> {
  const path = join(folder, createHash('sha256').update(code).digest('hex'));
  try {
    const bytes = await readFile(path);
    await unlink(path);
    return decodeLink(bytes);
  } catch (error) {
    if (error instanceof DecodeError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

export function signedInHandlers(options: SessionHandlerOptions) {
  const { base, gate, cookies, sessions, canSignIn, linkFolder, nowMs } = options;

  const show: HandlerOf<'login.session'> = async ({ exchange }) => {
    const admission = await gate.admit(exchange.head);
    if (admission === unauthenticated) return signedOutPage(base, canSignIn);
    if (admission.kind === 'refused') return admission.result;
    if (admission.kind === 'granted') return signedOutPage(base, canSignIn);
    return signedInPage(base, admission.identity, canSignIn);
  };

  /** A token that is refused anyway needs no end, so the browser only forgets it. */
  const logout: HandlerOf<'logout'> = async (call) => {
    const admission = await gate.admit(call.exchange.head);
    const done = seeOther(`${base}/login/session`, ...cookies.endSession(), cookies.endStep());
    if (admission === unauthenticated || admission.kind === 'granted') return done;
    if (admission.kind === 'refused') return admission.result;
    const { identity, crossSite } = admission;
    if (crossSite) return forbidden;
    if (!isSessionId(identity.tokenId)) {
      return conflict('unsupported', 'this token is not of a sign-in: delete its key, or ask its issuer to end it');
    }
    return (await sessions.end(call, identity, identity.tokenId)) ?? done;
  };

  const once: HandlerOf<'login.once'> = async (call) => {
    const link = linkFolder === undefined ? undefined : await takeLink(linkFolder, call.query.code);
    if (link === undefined || link.untilMs <= nowMs()) return usedLink;
    const session = await sessions.begin(call, link.subject, link, { by: 'link', atMs: nowMs() });
    if ('code' in session) return session;
    return seeOther(`${base}/login/session`, ...cookies.session(session.token, session.expiresAtMs - nowMs()));
  };

  return { 'login.session': show, logout, 'login.once': once };
}
