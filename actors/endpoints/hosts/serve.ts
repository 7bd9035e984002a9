/**
 * Serves the messages of hosts: hello, sync, report, usage, heartbeat. A host is not trusted, and
 * can report only about itself (invariant A7): its key and that of its agent come from the subject,
 * and the NATS server holds each agent to its subjects. Actors accept messages only under the
 * enrolled key (ADR 22).
 */
import type { Msg, Subscription } from '@nats-io/transport-node';
import { DecodeError, messageDecoder } from '../../../lib/decode.ts';
import { isHostKey, type HostKey } from '../../../schemas/ids.ts';
import {
  Beat,
  Hello,
  Report,
  SyncAsk,
  UsageReport,
  type HelloAnswer,
  type ReportAnswer,
  type UsageAnswer,
} from '../../../schemas/wire/host.ts';
import { anySender, senderOfSubject, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { ProtocolError, protocolFields } from '../../../schemas/wire/version.ts';
import { answerHello } from './hello.ts';
import { takeReport } from './report.ts';
import { countRefused, type HostServerOptions } from './server.ts';
import { answerSync } from './sync.ts';
import { takeUsage, type UsageOptions } from './usage.ts';

const decodeHello = messageDecoder(Hello);
const decodeSync = messageDecoder(SyncAsk);
const decodeReport = messageDecoder(Report);
const decodeUsage = messageDecoder(UsageReport);
const decodeBeat = messageDecoder(Beat);

interface Handler<T> {
  readonly subjectOf: (sender: Sender<HostKey | '*'>) => string;
  readonly decode: (bytes: Uint8Array) => T;
  readonly handle: (sender: Sender, value: T, message: Msg) => void;
  /** Absent if a malformed message, or one of an incompatible release, gets no answer. */
  readonly refuse?: (message: Msg, cause: DecodeError | ProtocolError) => void;
}

/** Decodes the messages of hosts and calls their handlers. */
function subscribe<T>(
  { nc, log, refusals }: HostServerOptions,
  { subjectOf, decode, handle, refuse }: Handler<T>,
  host: HostKey | '*' = '*',
): Subscription {
  const subject = subjectOf({ ...anySender, host });
  return nc.subscribe(subject, {
    callback: (error, message) => {
      if (error !== null) {
        log.error('subscription_failed', { subject, error });
        return;
      }
      const { host, user } = senderOfSubject(message.subject);
      if (!isHostKey(host)) return;
      try {
        handle({ host, user }, decode(message.data), message);
      } catch (cause) {
        const event = cause instanceof ProtocolError ? 'protocol_refused' : 'host_message_refused';
        refusals.warn(event, { subject: message.subject, error: cause });
        if (cause instanceof DecodeError || cause instanceof ProtocolError) refuse?.(message, cause);
      }
    },
  });
}

/** An agent drops what is invalid, but must keep what is readable after an upgrade. */
const refuseToTake = (message: Msg, cause: DecodeError | ProtocolError): void =>
  respond(message, { ok: false, error: cause instanceof ProtocolError ? 'unavailable' : 'invalid' });

const respond = (message: Msg, answer: HelloAnswer | ReportAnswer | UsageAnswer): void => {
  message.respond(JSON.stringify({ ...protocolFields, ...answer }));
};

export function serveHosts(options: UsageOptions): Subscription[] {
  const { log } = options;
  return [
    subscribe(options, {
      subjectOf: subjects.hostHello,
      decode: decodeHello,
      handle: (sender, value, message) => {
        answerHello(options, sender, value, (answer) => respond(message, answer)).catch((error: unknown) =>
          log.error('hello_failed', { host: sender.host, error }),
        );
      },
      refuse: (message, cause) => respond(message, { ok: false, error: 'invalid', message: cause.message }),
    }),
    subscribe(options, {
      subjectOf: subjects.hostSync,
      decode: decodeSync,
      handle: (sender, ask, message) => answerSync(options, sender, ask, (text) => void message.respond(text)),
    }),
    subscribe(options, {
      subjectOf: subjects.hostReport,
      decode: decodeReport,
      handle: (sender, report, message) => takeReport(options, sender, report, (answer) => respond(message, answer)),
      refuse: refuseToTake,
    }),
    subscribe(options, {
      subjectOf: subjects.hostUsage,
      decode: decodeUsage,
      handle: (sender, report, message) => {
        takeUsage(options, sender, report)
          .then((answer) => {
            if (answer !== undefined) respond(message, answer);
          })
          .catch((error: unknown) => log.error('usage_report_failed', { host: sender.host, error }));
      },
      refuse: refuseToTake,
    }),
  ];
}

/** Hears the heartbeats of a host, or of all. `onHeard`: called for those of an enrolled agent. */
export function subscribeHeartbeats(
  options: HostServerOptions,
  host: HostKey | '*',
  onHeard: (host: HostKey, beat: Beat) => void,
): Subscription {
  const { fleet } = options;
  const handler: Handler<Beat> = {
    subjectOf: subjects.hostBeat,
    decode: decodeBeat,
    handle: (sender, beat) => {
      // The silence of a fenced host is counted from when it was fenced.
      if (fleet.condition(sender.host) === 'fenced') return;
      if (fleet.isEnrolled(sender)) onHeard(sender.host, beat);
      else countRefused(options, 'beat', sender);
    },
  };
  return subscribe(options, handler, host);
}
