/** Groups of turns in the journal, and the commits until which their keys are dirty. */
import t from 'tap';
import { encodeSection } from '../../../../actors/runtime/journal/codec.ts';
import { DirtyKeys, Group, sectionBytes, type Draft } from '../../../../actors/runtime/journal/group.ts';
import { noReading } from '../../../../lib/time/cautious-clock.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { EventBody } from '../../../../schemas/api/event.ts';
import type { ContainerId, TenantId } from '../../../../schemas/ids.ts';
import { statusEvent } from '../../../gateway/support.ts';
import { operation } from '../../support.ts';

interface Bell {
  readonly bell: number;
}
const longEvent = (id: string): EventBody => ({
  ...statusEvent(id, '01890000-0000-7000-8000-000000000000' as ContainerId),
  message: '€'.repeat(500),
});
const draftWith = (parts: Partial<Omit<Draft, 'bytes' | 'tenant'>>): Draft => {
  const whole = { changes: [], events: [], lines: [], outcome: undefined, ...parts };
  return { ...whole, tenant: '', bytes: sectionBytes(whole) };
};
const changing = (key: string, value: Buffer | null): Draft => draftWith({ changes: [[key, value]] });
const groupOf = (number = 1, dirty = new DirtyKeys()) => new Group<Bell>(number, dirty);

t.test('the newest value of a key is journalled, and the last of effects with one key is carried out', (t) => {
  const group = groupOf(7);
  for (const [key, value] of [
    ['a', '1'],
    ['b', '2'],
    ['a', '3'],
    ['b', null],
  ] as const)
    group.take(changing(key, value === null ? null : Buffer.from(value)), 0);
  for (const [key, bell] of [
    ['h1', 1],
    ['h2', 2],
    ['h1', 3],
  ] as const)
    group.effect(key, { bell, requestId: `r${bell}` });
  t.same(group.commit(noReading).changes, [
    ['a', Buffer.from('3')],
    ['b', null],
  ]);
  t.same(
    [...group.effects()],
    [
      { bell: 3, requestId: 'r3' },
      { bell: 2, requestId: 'r2' },
    ],
  );
  t.end();
});

t.test('a group is full before its section is too large for an entry, whatever fills it', (t) => {
  const text = Buffer.from('x'.repeat(10_000));
  const fillings: Record<string, (group: Group<Bell>, index: number) => void> = {
    values: (group, index) => group.take(changing(`key-${index}`, text), 0),
    'many small values': (group, index) => group.take(changing(`key-${index}`, Buffer.from('1')), 0),
    deletions: (group, index) => group.take(changing(`key-${index}`, null), 0),
    'text of three bytes a letter': (group, index) =>
      group.take(changing(`key-${index}`, Buffer.from('€'.repeat(1000))), 0),
    'events with authors': (group, index) =>
      group.take(
        draftWith({
          events: [
            {
              subject: 'event.acme.01890000-0000-7000-8000-000000000000',
              event: longEvent(`0-1-${index}`),
              by: {
                tenant: 'acme' as TenantId,
                subject: '日'.repeat(256),
                token: 'ü'.repeat(256),
                address: '2001:db8::1',
              },
            },
          ],
        }),
        0,
      ),
    'answers, which are JSON in JSON': (group) =>
      group.take(
        draftWith({
          outcome: { op: operation(), atMs: 10 ** 13, code: 'ok', answer: { kind: 'body', body: '"\n'.repeat(500) } },
        }),
        0,
      ),
  };
  for (const [name, fill] of Object.entries(fillings)) {
    const group = groupOf();
    let filled = 0;
    for (; !group.isFull && filled < 10_000; filled++) fill(group, filled);
    const bytes = encodeSection(group.commit(noReading)).length;
    t.ok(group.isFull, `${name}: at last`);
    t.ok(bytes < limits.journalEntryBytes, `${name}: ${bytes} bytes`);
    t.ok(
      filled === limits.batchItems || bytes > limits.journalEntryBytes / 4,
      `${name}: not long before, ${bytes} bytes`,
    );
  }
  t.end();
});

t.test('a key is dirty until the newest commit that touched it', (t) => {
  const dirty = new DirtyKeys();
  const [first, second] = [groupOf(1, dirty), groupOf(2, dirty)];
  first.markDirty('a');
  first.markDirty('b');
  second.markDirty('b');
  t.same(
    ['a', 'b', 'c'].map((key) => dirty.until(key)),
    [1, 2, 0],
  );
  dirty.committed(first);
  t.same(
    ['a', 'b'].map((key) => dirty.until(key)),
    [0, 2],
    'the first does not settle what the second changed',
  );
  dirty.committed(second);
  t.equal(dirty.until('b'), 0);
  t.end();
});
