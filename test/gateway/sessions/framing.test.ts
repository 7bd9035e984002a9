import fc from 'fast-check';
import t from 'tap';
import { execFraming, forwardFraming, type Framing } from '../../../gateway/sessions/framing.ts';
import { limits } from '../../../schemas/limits.ts';

const text = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const onChannel = (channel: number, bytes: Uint8Array): Uint8Array => Buffer.concat([Buffer.of(channel), bytes]);
const resize = { type: 'resize', cols: 80, rows: 24 };
const signal = { type: 'signal', signal: 'SIGINT' };
const end = { type: 'end' };

t.test('messages that a client of an exec may send', (t) => {
  const full = execFraming({ tty: true, stdin: true });
  const bare = execFraming({ tty: false, stdin: false });
  const control = (value: unknown): Uint8Array => onChannel(3, text(value));
  const rows: [string, Framing, Uint8Array, boolean, 'data' | 'control' | 'fault'][] = [
    ['input', full, onChannel(0, Buffer.from('ls')), true, 'data'],
    ['no input', full, onChannel(0, Buffer.alloc(0)), true, 'data'],
    ['input that was not asked for', bare, onChannel(0, Buffer.from('ls')), true, 'fault'],
    ['nothing at all', full, Buffer.alloc(0), true, 'fault'],
    ['output', full, onChannel(1, Buffer.from('ls')), true, 'fault'],
    ['an unknown channel', full, onChannel(9, Buffer.from('ls')), true, 'fault'],
    ['text', full, Buffer.from('ls'), false, 'fault'],
    ['a size', full, control(resize), true, 'control'],
    ['a size without a terminal', bare, control(resize), true, 'fault'],
    ['a size that is none', full, control({ ...resize, cols: 0 }), true, 'fault'],
    ['a size beyond any terminal', full, control({ ...resize, rows: limits.terminalSize + 1 }), true, 'fault'],
    ['a signal', bare, control(signal), true, 'control'],
    ['a signal that is none', full, control({ type: 'signal', signal: 'SIGMOON' }), true, 'fault'],
    ['a number in place of a signal', full, control({ type: 'signal', signal: 9 }), true, 'fault'],
    ['the end of the input', full, control(end), true, 'control'],
    ['the end of an input that there is not', bare, control(end), true, 'fault'],
    ['a control with more fields', full, control({ ...end, x: 1 }), true, 'fault'],
    ['what only a host says', full, control({ type: 'exit', code: 0 }), true, 'fault'],
    ['a control that is no JSON', full, onChannel(3, Buffer.from('{')), true, 'fault'],
    ['a control without end', full, control({ ...end, x: 'x'.repeat(limits.tunnelControlBytes) }), true, 'fault'],
  ];
  for (const [what, framing, bytes, isBinary, kind] of rows) t.equal(framing.read(bytes, isBinary).kind, kind, what);
  t.end();
});

t.test('the fault of a control message names what is wrong with that one, and what is known', (t) => {
  const full = execFraming({ tty: true, stdin: true });
  const bare = execFraming({ tty: false, stdin: false });
  const signals = 'SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT';
  const rows: [Framing, unknown, string][] = [
    [full, { type: 'signal', signal: 'SIGFOO' }, `a control message is wrong: /signal must be one of ${signals}`],
    [full, { type: 'signal' }, "a control message is wrong: /signal can't be blank"],
    [full, { type: 'foo' }, 'a session of this kind knows no control "foo": signal, resize, end are known'],
    [bare, { type: 'end' }, 'a session of this kind knows no control "end": signal is known'],
    [full, { type: 'end', x: 1 }, 'a control message is wrong: /x is not known'],
    [full, { type: 'resize' }, "a control message is wrong: /cols, /rows can't be blank"],
    [full, { type: 'resize', cols: 0, rows: 1 }, 'a control message is wrong: /cols must be at least 1'],
    [full, { type: 7 }, 'a control message is wrong: /type must be a string'],
    [full, {}, "a control message is wrong: /type can't be blank"],
    [full, [], 'a control message is wrong: must be an object'],
  ];
  for (const [framing, value, fault] of rows)
    t.match(framing.read(onChannel(3, text(value)), true), { kind: 'fault', fault }, JSON.stringify(value));
  t.end();
});

t.test('messages that a client of a forward may send', (t) => {
  const rows: [string, Uint8Array, boolean, 'data' | 'control' | 'fault'][] = [
    ['bytes', Buffer.from('GET /'), true, 'data'],
    ['the end', text(end), false, 'control'],
    ['the end as bytes', text(end), true, 'data'],
    ['a size', text(resize), false, 'fault'],
    ['a signal', text(signal), false, 'fault'],
    ['any text', Buffer.from('hello'), false, 'fault'],
  ];
  for (const [what, bytes, isBinary, kind] of rows) t.equal(forwardFraming.read(bytes, isBinary).kind, kind, what);
  t.end();
});

t.test('bytes come through as they are, and control messages as JSON', (t) => {
  const exec = execFraming({ tty: false, stdin: true });
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const input = exec.read(onChannel(0, bytes), true);
      const output = exec.data(2, bytes);
      return (
        input.kind === 'data' &&
        Buffer.from(input.bytes).equals(bytes) &&
        Buffer.from(output).equals(onChannel(2, bytes)) &&
        forwardFraming.data(0, bytes) === bytes
      );
    }),
  );
  t.same(Buffer.from(exec.control({ a: 1 })), onChannel(3, text({ a: 1 })));
  t.equal(forwardFraming.control({ a: 1 }), '{"a":1}');
  t.end();
});
