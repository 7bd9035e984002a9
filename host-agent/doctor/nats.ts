/** NATS: whether it accepts this host's credentials, and whether actors accept its key. */
import { connect, createInbox, type NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { jwtAuthenticator } from '../../lib/nats/quick-pair.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import { keyFrom, type Identity } from '../link/identity/identity.ts';
import { isOfCertificate, reasonOf } from '../commands/reason.ts';
import { fail, ok, type Finding } from './finding.ts';

export type NatsFacts =
  | { readonly kind: 'refused'; readonly why: string }
  | {
      readonly kind: 'connected';
      readonly server: string;
      readonly roundTripMs: number;
      readonly heard: 'enrolled' | 'fenced' | 'nothing';
    };

export interface NatsAsk {
  readonly servers: readonly string[];
  readonly identity: Identity;
  readonly seed: Uint8Array;
  readonly caFile: string | undefined;
  /** The deadline of the connection, and again of the answer. */
  readonly ms: number;
}

/** Never rejects. */
export async function askNats({ servers, identity, seed, caFile, ms }: NatsAsk): Promise<NatsFacts> {
  const sender: Sender = { host: identity.host, user: keyFrom(seed).getPublicKey() };
  let nc: NatsConnection;
  try {
    nc = await connect({
      servers: [...servers],
      name: `longshore-doctor ${identity.host}`,
      authenticator: jwtAuthenticator(() => identity.jwt, seed),
      inboxPrefix: subjects.hostInbox(sender),
      reconnect: false,
      timeout: ms,
      ...(caFile === undefined ? {} : { tls: { caFile, handshakeFirst: true } }),
    });
  } catch (error) {
    return { kind: 'refused', why: reasonOf(error) };
  }
  try {
    const roundTripMs = await nc.rtt();
    return { kind: 'connected', server: nc.getServer(), roundTripMs, heard: await askOwner(nc, sender, ms) };
  } catch (error) {
    return { kind: 'refused', why: reasonOf(error) };
  } finally {
    await nc.close().catch(() => undefined);
  }
}

/** The rest of the answer is the desired set of the host. */
const decodeAnswer = decoder(Type.Object({ fenced: Type.Optional(Type.Boolean()) }));

/**
 * Asks the owner of one partition for the host's desired set, as the agent does: actors answer the
 * enrolled key alone. That changes nothing, and begins no session.
 */
async function askOwner(nc: NatsConnection, sender: Sender, ms: number) {
  const inbox = createInbox(subjects.hostInbox(sender));
  const answers = nc.subscribe(inbox, { max: 1, timeout: ms });
  const ask = { v: 1, ...protocolFields, partitions: [0], held: {} };
  nc.publish(subjects.hostSync(sender), JSON.stringify(ask), { reply: inbox });
  try {
    for await (const { data } of answers) {
      // A message without a payload means that there is no responder.
      if (data.length === 0) break;
      return decodeAnswer(data).fenced === true ? 'fenced' : 'enrolled';
    }
  } catch {
    // No answer in time.
  }
  return 'nothing';
}

/** Pure. */
export function judgeNats(facts: NatsFacts, servers: readonly string[]): Finding[] {
  const check = 'NATS';
  if (facts.kind === 'refused') {
    return [fail(check, `${servers.join(', ')}: ${facts.why}`, remedyOf(facts.why))];
  }
  const connected = ok(check, `connected to ${facts.server}, ${facts.roundTripMs} ms away`);
  switch (facts.heard) {
    case 'enrolled':
      return [connected, ok('control plane', 'answers the key of this host: it is the enrolled one')];
    case 'fenced':
      return [
        connected,
        fail(
          'control plane',
          'this host was removed: its agent stops its containers',
          'if it should serve again, declare it again and join with a new token (docs/runbook.md, Fencing a host)',
        ),
      ];
    case 'nothing':
      return [
        connected,
        fail(
          'control plane',
          `did not answer this host’s key within ${limits.doctorAnswerMs / 1000} s: no actors process serves, or another key was enrolled for this host`,
          'look at /readyz of the gateway. If it is ready, another machine joined as this host: make a join token, and join again',
        ),
      ];
  }
}

function remedyOf(why: string): string {
  if (/authorization|authentication|expired|revoked/i.test(why)) {
    return (
      'the server refuses the credentials: they expired, were revoked (the host was removed, or enrolled again with ' +
      'another key), or belong to another cluster. The agent renews expired ones (event credentials_renew_failed: what is ' +
      'in the way); for others make a join token, and join again'
    );
  }
  if (isOfCertificate(why)) {
    return 'set NATS_CA_FILE to the authority of the servers’ certificates, or correct their names';
  }
  if (/tls|ssl|wrong version|ECONNRESET|closed|parse/i.test(why)) {
    return 'TLS on one side alone: NATS_CA_FILE goes with handshake_first of the servers';
  }
  return 'open port 4222 to the NATS servers, or correct NATS_URLS';
}
