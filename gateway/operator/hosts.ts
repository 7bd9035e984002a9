/**
 * The fleet: hosts, their join tokens, and the two calls of agents without credentials: enrolment,
 * which alone accepts a join token, and the renewal of credentials that have expired.
 */
import type { DrainProgress, DrainShare } from '../../schemas/api/drain.ts';
import { isHostKey, type HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import type { OwnToken } from '../../schemas/routes.ts';
import type { Outcome } from '../../lib/rpc/partition-client.ts';
import { succeeded, written, type Call, type HandlerOf, type Handlers, type Writer } from '../call.ts';
import { created, failure, ok, type Result } from '../http/respond.ts';
import { hashOfToken, hostOfJoinToken } from '../auth/random-tokens.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { isSignedRenewal } from '../../lib/nats/renewal.ts';
import { askAll, listOfAll, type AskerOfAll } from './lists.ts';

/** Time that a gateway waits for the owners that count the containers of a host. */
const drainAskMs = 2000;

/** `undefined` if one of them did not answer. */
export function mergeDrain(outcomes: readonly Outcome[]): DrainShare | undefined {
  if (outcomes.length === 0 || !outcomes.every(succeeded)) return undefined;
  const shares = outcomes.map(({ body }) => decodeAnswer('host.drain', body).data);
  return {
    left: shares.reduce((sum, { left }) => sum + left, 0),
    moving: shares.reduce((sum, { moving }) => sum + moving, 0),
    blocked: shares.flatMap(({ blocked }) => blocked).slice(0, limits.drainBlocked),
  };
}

/** A container that came since the drain began counts from the time that it is there. */
export function progressOf(share: DrainShare, atFirst: number): DrainProgress {
  const total = Math.max(atFirst, share.left);
  return { total, moved: total - share.left, ...share };
}

export interface HostRoutesOptions extends AskerOfAll, Writer {
  /** 32 random bytes, base64url. */
  readonly newSecret: () => string;
  /** Counts a wrong token of this kind against the client. */
  readonly countAuthFailure: (call: Call, token: OwnToken) => void;
  readonly clock: Clock;
}

export function hostRoutes(options: HostRoutesOptions) {
  const { ask, clock } = options;
  /**
   * Adds the token to the actor's answer. Only this answer shows the token; actors store its hash.
   */
  const withToken = (outcome: Outcome, joinToken: string): Result => {
    if (!succeeded(outcome)) return outcome;
    const { data: host } = decodeAnswer('host.create', outcome.body);
    const expiresAt = timestamp(clock.nowMs() + limits.joinTokenTtlMs);
    return created({ host, join_token: joinToken, expires_at: expiresAt }, outcome);
  };

  /** The drain of the host over all partitions; `undefined` if not all have answered. */
  const drainOf = async (call: Call, of: HostKey): Promise<DrainShare | undefined> => {
    const deadlineMs = Math.min(call.deadlineMs, clock.monotonicMs() + drainAskMs);
    const asked = askAll(options, { deadlineMs }, (partition) => ({
      type: 'host.drain',
      partition,
      of,
      ...call.origin,
    }));
    return mergeDrain((await asked) ?? []);
  };

  const get: HandlerOf<'host.get'> = async (call) => {
    const { key: host } = call.params;
    const outcome = await ask('read', { type: 'host.get', host, ...call.origin }, call.deadlineMs);
    if (!succeeded(outcome)) return outcome;
    const { drain_total: total = 0, ...view } = decodeAnswer('host.get', outcome.body).data;
    const share = view.draining ? await drainOf(call, host) : undefined;
    return ok({ ...view, drain: share === undefined ? null : progressOf(share, total) }, outcome);
  };

  const update: HandlerOf<'host.update'> = async (call) => {
    const { key: host } = call.params;
    const share = call.body.draining === true ? await drainOf(call, host) : undefined;
    const placed = share === undefined ? {} : { placed: share.left };
    const question = {
      type: 'host.update',
      host,
      update: call.body,
      ...placed,
      ...written(options, call),
    } as const;
    return ask('write', question, call.deadlineMs);
  };

  const create: HandlerOf<'host.create'> = async (call) => {
    const { key: host, region } = call.body;
    const joinToken = `lsj_${host}_${options.newSecret()}`;
    const question = {
      type: 'host.create',
      host,
      region,
      joinTokenHash: hashOfToken(joinToken),
      ...written(options, call),
    } as const;
    return withToken(await ask('write', question, call.deadlineMs), joinToken);
  };

  const joinToken: HandlerOf<'host.join_token'> = async (call) => {
    const host = call.params.key;
    const token = `lsj_${host}_${options.newSecret()}`;
    const question = {
      type: 'host.join_token',
      host,
      joinTokenHash: hashOfToken(token),
      ...written(options, call),
    } as const;
    return withToken(await ask('write', question, call.deadlineMs), token);
  };

  const enrol: HandlerOf<'host.enrol'> = async (call) => {
    const { join_token: token, public_key: publicKey } = call.body;
    const host = hostOfJoinToken(token);
    const outcome: Outcome =
      host === undefined
        ? failure('unauthenticated')
        : await ask(
            'write',
            {
              type: 'host.enrol',
              host,
              joinTokenHash: hashOfToken(token),
              publicKey,
              ...written(options, call),
            },
            call.deadlineMs,
          );
    // A host that does not exist gets the same answer as a wrong token.
    if (outcome.code === 'unauthenticated' || outcome.code === 'not_found') {
      options.countAuthFailure(call, 'join token');
      return failure('unauthenticated');
    }
    if (outcome.code !== 'ok' && outcome.code !== 'created') return outcome;
    const { data } = decodeAnswer('host.enrol', outcome.body);
    return created(data);
  };

  const renew: HandlerOf<'host.renew'> = async (call) => {
    const { host_key: host, public_key: publicKey, at, nonce } = call.body;
    const outcome: Outcome = !isSignedRenewal(call.body)
      ? failure('unauthenticated')
      : await ask(
          'write',
          { type: 'host.renew', host, publicKey, atMs: Date.parse(at), nonce, ...written(options, call) },
          call.deadlineMs,
        );
    if (outcome.code === 'unauthenticated') {
      options.countAuthFailure(call, 'host key');
      return failure('unauthenticated');
    }
    return outcome.code === 'ok' ? ok(decodeAnswer('host.renew', outcome.body).data) : outcome;
  };

  return {
    'host.list': listOfAll(options, 'host.list', { isKey: isHostKey, keyOf: ({ key }) => key }),
    'host.create': create,
    'host.get': get,
    'host.update': update,
    'host.join_token': joinToken,
    'host.remove': ((call) =>
      ask(
        'write',
        {
          type: 'host.remove',
          host: call.params.key,
          force: call.query.force,
          dead: call.query.dead,
          ...written(options, call),
        },
        call.deadlineMs,
      )) satisfies HandlerOf<'host.remove'>,
    'host.enrol': enrol,
    'host.renew': renew,
  } satisfies Partial<Handlers>;
}
