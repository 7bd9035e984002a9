/** The gateways' part of the fake control plane: seals secrets and logins for the agent. */
import type { NatsConnection } from '@nats-io/transport-node';
import { decoder } from '../../../../lib/decode.ts';
import { anySender, subjects } from '../../../../schemas/wire/subjects.ts';
import { UnsealAsk, type UnsealAnswer } from '../../../../schemas/wire/unseal.ts';
import { seal, secretOf } from './sealing.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';

const decodeAsk = decoder(UnsealAsk);

export interface Vault {
  /** A null value removes the version. */
  setSecret(tenant: string, name: string, version: number, value: string | null): void;
  setLogin(tenant: string, registry: string, login: { username: string; password: string } | null): void;
  /** `silent`: as a control plane without a gateway that serves the subject. */
  play(mood: 'open' | 'unavailable' | 'silent'): void;
  /** Asks of the agent, in order. */
  asks(): readonly UnsealAsk[];
  /** Everything sent to the agent. */
  boxes(): readonly string[];
  serve(nc: NatsConnection): Promise<void>;
}

export function createVault(): Vault {
  const secrets = new Map<string, string>();
  const logins = new Map<string, { username: string; password: string; version: number }>();
  const asks: UnsealAsk[] = [];
  const boxes: string[] = [];
  let mood: Parameters<Vault['play']>[0] = 'open';
  let version = 0;

  const answerTo = (ask: UnsealAsk): UnsealAnswer => {
    if (mood === 'unavailable') return { ok: false, error: 'unavailable', message: 'the vault is closed' };
    const boxed = (value: object): UnsealAnswer => {
      const box = seal(value, ask.key);
      boxes.push(box);
      return { ok: true, box };
    };
    if (ask.secret !== undefined) {
      const value = secrets.get(`${ask.tenant} ${ask.secret.name} ${ask.secret.version}`);
      return value === undefined ? { ok: false, error: 'refused', message: 'no such secret' } : boxed(secretOf(value));
    }
    const login = logins.get(`${ask.tenant} ${ask.registry}`);
    return login === undefined ? { ok: true, box: null } : boxed(login);
  };

  return {
    setSecret: (tenant, name, of, value) => {
      const key = `${tenant} ${name} ${of}`;
      if (value === null) secrets.delete(key);
      else secrets.set(key, value);
    },
    setLogin: (tenant, registry, login) => {
      const key = `${tenant} ${registry}`;
      if (login === null) logins.delete(key);
      else logins.set(key, { ...login, version: (version += 1) });
    },
    play: (next) => {
      mood = next;
    },
    asks: () => asks,
    boxes: () => boxes,
    serve: async (nc) => {
      nc.subscribe(subjects.hostUnseal(anySender), {
        callback: (_, message) => {
          const ask = decodeAsk(message.data);
          asks.push(ask);
          if (mood !== 'silent') message.respond(JSON.stringify({ ...protocolFields, ...answerTo(ask) }));
        },
      });
      await nc.flush();
    },
  };
}
