/** The stream AUDIT, whose lines an owner sends in lists. */
import type { NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import type { Clock } from '../../lib/time/clock.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import { AuditLine } from '../../schemas/api/audit/line.ts';
import { days, minutes } from '../../schemas/limits/units.ts';
import { PastReader, type PastFound, type PastRange } from '../streams/past.ts';
import { SubjectReader } from '../streams/subject-reader.ts';

/** Greatest lead of an owner's clock over that of the servers. */
const auditAheadMs = 5 * minutes;

/** Messages that a page looks at: filters may match few of them. */
const auditReadMessages = 2048;
/** A line is in the stream by then, however long the stream was away. */
const auditLateMs = 1 * days;

const decodeLines = decoder(Type.Array(Type.Object(AuditLine.properties)));

export class AuditReader {
  readonly #past: PastReader<AuditLine>;
  readonly #onMalformed: () => void;

  constructor(nc: Promise<NatsConnection>, clock: Clock, onMalformed: () => void) {
    this.#past = new PastReader(new SubjectReader(nc, 'audit', clock), {
      itemsOf: (message) => this.#linesOf(message),
      aheadMs: auditAheadMs,
      late: { byMs: auditLateMs },
      pageMessages: auditReadMessages,
    });
    this.#onMalformed = onMalformed;
  }

  find(range: PastRange<AuditLine>): Promise<PastFound<AuditLine>> {
    return this.#past.find(range);
  }

  #linesOf({ data }: ReadMessage): readonly AuditLine[] {
    try {
      return decodeLines(data);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#onMalformed();
      return [];
    }
  }
}
