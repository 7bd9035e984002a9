/** The head of a message, as the client decodes it and as it is read from the bytes. */
import { headers, type Msg } from '@nats-io/transport-node';
import t from 'tap';
import { headOf } from '../../../lib/nats/message-head.ts';

const subject = '_INBOX.reader';

interface Arrived {
  readonly head: string;
  readonly payload?: string;
  readonly reply?: string;
  /** Bytes of other messages in the same chunk. */
  readonly before?: string;
}

/** A message as the client hands it out: its payload is a view of the chunk that arrived. */
function arrived({ head, payload = '', reply, before = '' }: Arrived): Msg & { size(): number } {
  const chunk = new Uint8Array(Buffer.from(before + head + payload));
  const start = Buffer.byteLength(before) + Buffer.byteLength(head);
  return {
    subject,
    ...(reply === undefined ? {} : { reply }),
    data: chunk.subarray(start),
    headers: headers(500, 'decoded by the client'),
    size: () => subject.length + (reply?.length ?? 0) + chunk.length - Buffer.byteLength(before),
  } as Msg & { size(): number };
}

const record =
  'NATS/1.0\r\nNats-Subject: $KV.state-0.container.a.b\r\nNats-Sequence:  42 \r\nKV-Operation: DEL\r\n\r\n';

t.test('lines of the head', async (t) => {
  for (const [name, message] of [
    ['alone', arrived({ head: record })],
    ['with a payload', arrived({ head: record, payload: '\r\nNats-Sequence: 7\r\n' })],
    ['behind another message', arrived({ head: record, before: 'NATS/1.0\r\nNats-Sequence: 7\r\n\r\nvalue\r\n' })],
    ['with a reply subject', arrived({ head: record, payload: 'x', reply: '_INBOX.other' })],
  ] as const) {
    const head = headOf(message);
    if (head === undefined) return t.fail(name);
    t.equal(head.code, 0, name);
    t.equal(head.description, '');
    t.equal(head.get('Nats-Subject'), '$KV.state-0.container.a.b');
    t.equal(head.get('Nats-Sequence'), '42', 'without spaces around it');
    t.equal(head.get('KV-Operation'), 'DEL');
    t.equal(head.get('Nats-Last-Sequence'), '', 'not there');
    t.equal(head.get('Subject'), '', 'the end of another name');
  }
});

t.test('of lines with one name the first counts', async (t) => {
  const twice = 'NATS/1.0\r\nNats-Sequence: 1\r\nNats-Sequence: 2\r\n\r\n';
  t.equal(headOf(arrived({ head: twice }))?.get('Nats-Sequence'), '1');
});

t.test('a status', async (t) => {
  const end = headOf(arrived({ head: 'NATS/1.0 204 EOB\r\nNats-Num-Pending: 3\r\n\r\n' }));
  t.match(end, { code: 204, description: 'EOB' });
  t.equal(end?.get('Nats-Num-Pending'), '3');
  t.match(headOf(arrived({ head: 'NATS/1.0 404 Message Not Found\r\n\r\n' })), {
    code: 404,
    description: 'Message Not Found',
  });
  t.match(headOf(arrived({ head: 'NATS/1.0 503\r\n\r\n' })), { code: 503, description: '' });
});

t.test('a head that does not lie before its payload is the one that the client decoded', async (t) => {
  const decoded = { code: 500, description: 'decoded by the client' };
  const whole = arrived({ head: record });
  t.match(headOf({ ...whole, data: new Uint8Array(0) }), decoded, 'a payload of its own');
  t.match(headOf({ ...whole, size: () => 0 }), decoded);
  t.match(headOf(arrived({ head: record.replace('NATS/1.0', 'NATS/2.0') })), decoded, 'another version');
  t.match(headOf(arrived({ head: record.slice(0, -2) })), decoded, 'without its end');
  const { size: _, ...other } = whole;
  t.match(headOf(other), decoded, 'of another client');
  t.equal(headOf({ ...other, headers: undefined } as unknown as Msg), undefined, 'there is none');
});
