/**
 * Gives agents what their containers need (ADR 37). The ask proves which agent asks; the owner of
 * the tenant says whether it may have the value. The gateway opens it, and seals it to the key in
 * the ask, so that neither NATS nor the agent's disk ever has it in clear text.
 *
 * All gateways that have the vault's keys and know the account HOSTS share the asks, also one that
 * drains.
 */
import { setImmediate } from 'node:timers/promises';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import Type from 'typebox';
import { DecodeError, decoder, messageDecoder } from '../../lib/decode.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner, Outcome, Question } from '../../lib/rpc/partition-client.ts';
import type { Fields, Log } from '../../lib/log.ts';
import { rateLimitedLog, type RateLimitedLog } from '../../lib/rate-limited-log.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { registryName } from '../../schemas/api/registry.ts';
import type { Sealed, SecretPlace } from '../../schemas/records/sealed.ts';
import { isHostKey, type ContainerId, type NetworkName, type PeerId, type TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { AnswerOf } from '../../schemas/wire/asks.ts';
import { anySender, senderOfSubject, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import {
  UnsealAsk,
  type UnsealAnswer,
  type UnsealedKey,
  type UnsealedLogin,
  type UnsealedSecret,
} from '../../schemas/wire/unseal.ts';
import { ProtocolError, protocolFields } from '../../schemas/wire/version.ts';
import { RateLimiter } from '../auth/rate-limits.ts';
import { succeeded } from '../call.ts';
import type { Unsealed } from '../metrics.ts';
import { SealError, type Vault } from '../vault/vault.ts';
import { networkPlace } from '../vpn/service/networks/authority.ts';
import { sealTo, warmUp } from './box.ts';
import type { HostIssuers } from './host-issuers.ts';
import { faultOfProof } from './proof.ts';

/** The time for the answer of an owner: an agent waits longer. */
const unsealMs = 4000;
/** Asks of agents under way in a gateway. Each holds a value of at most `secretBytes`. */
const unsealsUnderWay = 512;
/** Of one host; a burst serves a full host that has lost all it kept. */
const unsealsPerSecond = 50;
const unsealBurst = 4000;

const decodeUnseal = messageDecoder(UnsealAsk);
const decodeError = decoder(Type.Object({ message: Type.Optional(Type.String()) }));

export interface UnsealOptions {
  readonly vault: Vault;
  readonly issuers: HostIssuers;
  readonly ask: AskOwner;
  /** Renews the certificate of a network's server, if that is due. @throws Refusal */
  readonly renew: (network: NetworkName, rid: string, deadlineMs: number) => Promise<unknown>;
  readonly newRequestId: () => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly count: (result: Unsealed) => void;
}

interface NotServed {
  readonly why?: string;
  readonly error?: Error;
  readonly todo: string;
}

/** `refused`: by the owner. */
type Refusal = Extract<Unsealed, 'refused' | 'invalid' | 'forged'>;

/** Everything else of the gateway goes on. */
export const notServed = (log: Log, { todo, ...cause }: NotServed): void =>
  log.error('unseal_failed', {
    reason: 'unavailable',
    ...cause,
    effect: 'no container gets a secret or a registry login from this gateway',
    todo: `${todo}: docs/deploy.md, Keys and accounts`,
  });

export class UnsealService {
  readonly #options: UnsealOptions;
  readonly #rates: RateLimiter;
  /** One for each reason: many of one hide none of another. */
  readonly #refusals: Readonly<Record<Refusal, RateLimitedLog>>;
  #subscription: Subscription | undefined;
  readonly #underWay = new Set<Promise<void>>();
  /** The last of the seals, which are made one in each turn of the event loop. */
  #lastSeal: Promise<void> = Promise.resolve();

  constructor(options: UnsealOptions) {
    const { clock, log } = options;
    this.#options = options;
    const rate = { perSecond: unsealsPerSecond, burst: unsealBurst };
    this.#rates = new RateLimiter(rate, clock, { shared: false });
    const limited = (): RateLimitedLog => rateLimitedLog(log, limits.refusalLogMs, clock);
    this.#refusals = { refused: limited(), invalid: limited(), forged: limited() };
  }

  async start(nc: NatsConnection): Promise<void> {
    await warmUp(() => setImmediate());
    this.#subscription = nc.subscribe(subjects.hostUnseal(anySender), {
      queue: 'unseal',
      callback: (error, message) => {
        if (error === null) this.#begin(message);
        else notServed(this.#options.log, { error, todo: 'give NATS and this gateway what nats-keys writes' });
      },
    });
  }

  /** Answers what has arrived, which takes no longer than the deadline of an ask. */
  async stop(): Promise<void> {
    // The server closes one that it refuses.
    if (this.#subscription?.isClosed() === false) await this.#subscription.drain();
    await Promise.all(this.#underWay);
  }

  #begin(message: Msg): void {
    const serving = this.#serve(message)
      // The connection was closed meanwhile; the agent asks again.
      .catch((error: unknown) => this.#options.log.warn('unseal_failed', { reason: 'not_sent', error }))
      .finally(() => this.#underWay.delete(serving));
    this.#underWay.add(serving);
  }

  async #serve(message: Msg): Promise<void> {
    const { log, count } = this.#options;
    let answer: UnsealAnswer;
    let result: Unsealed;
    try {
      [result, answer] = await this.#answerTo(message);
    } catch (error) {
      log.error('unseal_failed', { reason: 'fault', error });
      [result, answer] = unavailable('the gateway failed; its log says why');
    }
    count(result);
    message.respond(JSON.stringify({ ...protocolFields, ...answer }));
  }

  async #answerTo({ subject, data }: Msg): Promise<Answered> {
    const sender = senderOfSubject(subject);
    if (!isHostKey(sender.host)) return refused('invalid', 'no such host');
    const agent: Sender = { host: sender.host, user: sender.user };
    if (this.#underWay.size > unsealsUnderWay) return limited('too many asks are under way');
    if (this.#rates.take(agent.host) > 0) return limited('this host asks too often');
    let ask: UnsealAsk;
    try {
      ask = decodeUnseal(data);
    } catch (error) {
      if (!(error instanceof DecodeError || error instanceof ProtocolError)) throw error;
      this.#logRefusal('invalid', { ...agent, why: error.message });
      return refused('invalid', error.message);
    }
    return this.#withoutProof(agent, ask) ?? this.#unseal(agent, ask);
  }

  /** The refusal of an ask that its agent has not proved to be its own. */
  #withoutProof(sender: Sender, ask: UnsealAsk): Answered | undefined {
    const { issuers, clock } = this.#options;
    const { proof, tenant, id: container, peer, network } = ask;
    const asked = { ...sender, tenant, container, peer, network };
    const fault = faultOfProof({ sender, ask, proof, issuers, nowMs: clock.nowMs() });
    if (fault === undefined) return undefined;
    this.#logRefusal('forged', { ...asked, why: fault });
    return ['forged', { ok: false, error: 'refused', message: `the gateway does not believe the agent: ${fault}` }];
  }

  #logRefusal(reason: Refusal, fields: Fields): void {
    this.#refusals[reason].warn('unseal_failed', { reason, ...fields });
  }

  async #unseal(agent: Sender, ask: UnsealAsk): Promise<Answered> {
    const { clock } = this.#options;
    if (ask.peer !== undefined || ask.network !== undefined) return this.#key(agent, ask);
    if (ask.file !== undefined) return this.#file(agent, ask, ask.file);
    const outcome = await this.#options.ask('read', this.#questionOf(agent, ask), clock.monotonicMs() + unsealMs);
    if (!succeeded(outcome)) return this.#refusedByOwner(agent, ask, outcome);
    const { data: found } = decodeAnswer('secret.unseal', outcome.body);
    if (found === null) return ['no_login', { ok: true, box: null }];
    const plain = this.#open(ask, found);
    if (plain === undefined) return unopened;
    return this.#sealed(ask, plain);
  }

  /** A file is no secret, but goes the way of one. */
  async #file({ host, user }: Sender, ask: OfContainer, sha256: string): Promise<Answered> {
    const { clock, newRequestId } = this.#options;
    const { tenant, id: container } = ask;
    const get: Question = {
      type: 'file.get',
      tenant,
      hashes: [sha256],
      host: { container, by: { host, user } },
      rid: newRequestId(),
    };
    const outcome = await this.#options.ask('read', get, clock.monotonicMs() + unsealMs);
    if (!succeeded(outcome)) return this.#refusedByOwner({ host, user }, ask, outcome);
    const [value = ''] = decodeAnswer('file.get', outcome.body).data;
    const content: UnsealedSecret = { value };
    return this.#sealed(ask, Buffer.from(JSON.stringify(content)));
  }

  /** A key of a VPN network or of a peer, for the host that serves it. */
  async #key(agent: Sender, ask: Extract<UnsealAsk, { peer: PeerId } | { network: NetworkName }>): Promise<Answered> {
    const { clock, newRequestId } = this.#options;
    const { host, user } = agent;
    const rid = newRequestId();
    const deadlineMs = clock.monotonicMs() + unsealMs;
    const by = { by: { host, user }, rid };
    const question: Question =
      ask.peer === undefined
        ? { type: 'network.unseal', network: ask.network, ...by }
        : { type: 'peer.unseal', tenant: ask.tenant, peer: ask.peer, ...by };
    const outcome = await this.#options.ask('read', question, deadlineMs);
    if (!succeeded(outcome)) return this.#refusedByOwner(agent, ask, outcome);
    // The agent hears the serial of a new certificate from the network's owner, and asks again.
    if (ask.network !== undefined) await this.#renew(ask.network, rid, deadlineMs);
    const opened = ask.peer === undefined ? this.#networkKeys(ask.network, outcome) : this.#peerKey(ask, outcome);
    return opened === undefined ? unopened : this.#sealed(ask, Buffer.from(JSON.stringify(opened)));
  }

  async #renew(network: NetworkName, rid: string, deadlineMs: number): Promise<void> {
    await this.#options
      .renew(network, rid, deadlineMs)
      .catch((error: unknown) =>
        this.#options.log.warn('certificate_renew_failed', { network, requestId: rid, error }),
      );
  }

  #networkKeys(network: NetworkName, { body }: Outcome): UnsealedKey | undefined {
    const { sealed, ike } = decodeAnswer('network.unseal', body).data;
    const key = this.#openAt(networkPlace(network, 'wireguard'), sealed);
    if (key === undefined) return undefined;
    const { sealed: sealedKey, ...rest } = ike;
    const privateKey = this.#openAt(networkPlace(network, 'server'), sealedKey);
    if (privateKey === undefined) return undefined;
    return { key: key.toString(), ike: { ...rest, private_key: privateKey.toString() } };
  }

  #peerKey({ tenant, peer }: { tenant: TenantId; peer: PeerId }, { body }: Outcome): UnsealedKey | undefined {
    const { sealed, ike } = decodeAnswer('peer.unseal', body).data;
    const key = this.#openAt({ of: 'peer', tenant, peer, field: 'preshared' }, sealed);
    return key === undefined ? undefined : { key: key.toString(), ike };
  }

  async #sealed({ key }: UnsealAsk, plain: Buffer): Promise<Answered> {
    try {
      return ['sealed', { ok: true, box: await this.#seal(key, plain) }];
    } catch {
      // The checksum in the text of a key is no part of its pattern.
      return refused('invalid', 'the key is none');
    }
  }

  #questionOf({ host, user }: Sender, { tenant, id: container, secret, registry }: OfContainer): Question {
    return {
      type: 'secret.unseal',
      tenant,
      container,
      by: { host, user },
      ...(secret === undefined ? {} : { secret }),
      ...(registry === undefined ? {} : { registry }),
      rid: this.#options.newRequestId(),
    };
  }

  #refusedByOwner(agent: Sender, ask: UnsealAsk, { code, body }: Outcome): Answered {
    const { tenant, id: container, peer, network } = ask;
    const message = messageIn(body);
    if (code !== 'forbidden' && code !== 'not_found') return unavailable(message ?? code);
    this.#logRefusal('refused', { ...agent, tenant, container, peer, network, why: message ?? code });
    return refused('refused', message ?? code);
  }

  /** `undefined` if it does not open here. Another gateway may have its key. */
  #open({ tenant, secret, registry = '' }: OfContainer, { version, sealed, username }: Found): Buffer | undefined {
    const place: SecretPlace =
      secret === undefined
        ? { of: 'login', tenant, registry: registryName(registry), version }
        : { of: 'secret', tenant, name: secret.name, version: secret.version };
    const bytes = this.#openAt(place, sealed);
    if (bytes === undefined) return undefined;
    const content: UnsealedSecret | UnsealedLogin =
      secret === undefined
        ? { username: username ?? '', password: bytes.toString(), version }
        : { value: bytes.toString('base64') };
    return Buffer.from(JSON.stringify(content));
  }

  /** Undefined: it does not open here. */
  #openAt(place: SecretPlace, sealed: Sealed): Buffer | undefined {
    try {
      return this.#options.vault.openBytes(place, sealed);
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      this.#options.log.error('secret_open_failed', { of: place.of, why: error.why });
      return undefined;
    }
  }

  /** A seal takes milliseconds, and many asks may have their answers at the same time. */
  #seal(key: string, plain: Buffer): Promise<string> {
    const sealed = this.#lastSeal.then(async () => {
      await setImmediate();
      return sealTo(key, plain);
    });
    this.#lastSeal = sealed.then(
      () => undefined,
      () => undefined,
    );
    return sealed;
  }
}

/** For a container. */
type OfContainer = Extract<UnsealAsk, { id: ContainerId }>;
type Answered = [Unsealed, UnsealAnswer];
type Found = NonNullable<AnswerOf<'secret.unseal'>['data']>;

const refused = (error: 'invalid' | 'refused', message: string): Answered => [error, { ok: false, error, message }];
const unavailable = (message: string): Answered => ['unavailable', { ok: false, error: 'unavailable', message }];
const unopened = unavailable('the value does not open with the keys of this gateway');
const limited = (message: string): Answered => ['limited', { ok: false, error: 'unavailable', message }];

/** The message of an owner's error. */
function messageIn(body: string): string | undefined {
  return body === '' ? undefined : decodeError(Buffer.from(body)).message;
}
