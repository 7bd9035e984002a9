/** The sizes that bound groups and batches; load.test.ts has the stored form and its damages. */
import t from 'tap';
import { eventBytes, operationBytes, type OutgoingEvent } from '../../../../actors/runtime/journal/codec.ts';
import type { OperationRecord } from '../../../../schemas/records/operation.ts';
import type { HostKey, OperationId, TenantId } from '../../../../schemas/ids.ts';
import { subjects } from '../../../../schemas/wire/subjects.ts';
import { containerId } from '../../support.ts';

const text = (length: number) => 'x'.repeat(length);
const tenant = text(64) as TenantId;
const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

t.test('an event takes no more than is counted for it, with the longest of everything', (t) => {
  const id = containerId();
  for (const message of [null, '', text(500), '"\n\u0001'.repeat(200), '€😀'.repeat(200)]) {
    const outgoing: OutgoingEvent = {
      subject: subjects.event(tenant, id),
      event: {
        id: `999999-${'9'.repeat(15)}-999999`,
        ts: new Date(8.64e15).toISOString(),
        type: 'operator_changed',
        container_id: id,
        name: text(63),
        generation: Number.MAX_SAFE_INTEGER,
        host_key: text(63) as HostKey,
        status: 'removing',
        reason: 'registry_not_allowed',
        message,
        exit_code: Number.MIN_SAFE_INTEGER,
        request_id: text(64),
      },
    };
    t.ok(sizeOf(outgoing) < eventBytes(outgoing), `message: ${JSON.stringify(message).slice(0, 20)}`);
  }
  t.end();
});

t.test('so does the outcome of an operation', (t) => {
  const answers: OperationRecord['answer'][] = [
    { kind: 'container', tenant, id: containerId() },
    { kind: 'body', body: '' },
    { kind: 'body', body: JSON.stringify({ data: '"\n€'.repeat(1000) }) },
  ];
  for (const answer of answers) {
    const op = text(64) as OperationId;
    const record: OperationRecord = { op, atMs: Number.MAX_SAFE_INTEGER, code: 'no_content', answer };
    t.ok(sizeOf(record) < operationBytes(record), JSON.stringify(answer).slice(0, 40));
  }
  t.end();
});
