/** Messages of events, and who caused these. */
import t from 'tap';
import { eventMessages } from '../../../../actors/runtime/events/event-outbox.ts';
import { eventKind } from '../../../../actors/runtime/events/outboxes.ts';
import type { Author } from '../../../../schemas/api/audit/line.ts';
import type { EventBody } from '../../../../schemas/api/event.ts';
import { limits } from '../../../../schemas/limits.ts';
import { tenantId } from '../../support.ts';
import { eventAuthorsBytes } from '../../../../actors/runtime/events/authors-header.ts';

const tenant = tenantId('acme');

t.test('messages say who caused their events, as often as a header has room', (t) => {
  const ofName = (subject: string) => ({ tenant, subject, token: 'k', address: null });
  const long = (name: string) => ofName(name.padEnd(limits.auditTextChars, '日'));
  const entriesOf = (authors: readonly (Author | undefined)[]) => [
    {
      number: 1,
      events: authors.map((by, index) => ({
        subject: 'event.acme.a',
        event: { id: `0-1-${index}` } as EventBody,
        ...(by === undefined ? {} : { by }),
      })),
    },
  ];
  const messagesOf = (...authors: readonly (Author | undefined)[]) => eventMessages(eventKind, entriesOf(authors));
  const [one] = messagesOf(ofName('Zoë\r\n'), ofName('Zoë\r\n'), undefined, ofName('b'));
  t.match(one?.by, /^[ -~]+$/, 'in ASCII, on one line');
  t.same(JSON.parse(one?.by ?? ''), [
    [2, ofName('Zoë\r\n')],
    [1, null],
    [1, ofName('b')],
  ]);
  t.same(
    messagesOf(undefined, undefined).map(({ by }) => by),
    [undefined],
    'no header for nobody',
  );
  const many = Array.from({ length: 60 }, (_, index) => long(`${index} `));
  const told = messagesOf(...many);
  t.ok(told.length > 1);
  t.ok(told.every(({ by = '' }) => by.length > 0 && by.length <= eventAuthorsBytes));
  t.same(
    told.flatMap(({ by = '' }) => (JSON.parse(by) as [number, Author][]).map(([, author]) => author)),
    many,
    'each, in their order',
  );
  t.same(
    told.flatMap(({ payload }) => (JSON.parse(payload) as EventBody[]).map(({ id }) => id)),
    many.map((_, index) => `0-1-${index}`),
  );
  const endless = ofName('x'.repeat(eventAuthorsBytes));
  t.match(messagesOf(endless, ofName('b')), [{ by: '[[1,null],[1,' }], 'one that has no room in any is left out');
  t.end();
});
