import fc from 'fast-check';
import t from 'tap';
import { attachment, fileName } from '../../../../gateway/vpn/render/filename.ts';
import type { PeerId } from '../../../../schemas/ids.ts';
import { breaking, label, nasty, peerId } from '../support.ts';

const own = 'peer-2e3f4a5b';

t.test('of a name what is fit stays', (t) => {
  const table: readonly (readonly [name: string, base: string])[] = [
    ['phone', 'phone'],
    ['Ann’s Phone', 'Ann-s-Phone'],
    ['Zoë', 'Zoe'],
    ['ﬁle ①', 'file-1'],
    ['a_b', 'a_b'],
    ['v1.2+x=y', 'v1-2-x-y'],
    ['0123456789abcdef', '0123456789abcde'],
    ['0123456789abcd efg', '0123456789abcd'],
    ['--x--', 'x'],
    ['.hidden', 'hidden'],
    ['Ａ', 'A'],
    ['电话', own],
    ['', own],
    ['...', own],
    ['con', own],
    ['CON', own],
    ['nul.txt', 'nul-txt'],
    ['LPT¹', own],
    ['com7', own],
    ['aux ', own],
    ['lo', own],
    ['default', own],
    ['COM10', 'COM10'],
  ];
  for (const [name, base] of table) t.equal(fileName(name, peerId, 'conf'), `${base}.conf`, name);
  t.end();
});

t.test('every name gives one that wg-quick, Windows and a header take', (t) => {
  const check = (name: string): void => {
    const file = fileName(name, peerId, 'mobileconfig');
    const [, base = ''] = /^([A-Za-z0-9_][A-Za-z0-9_-]{0,14})\.mobileconfig$/.exec(file) ?? [];
    if (base === '') throw new Error(file);
    if (/^(?:con|prn|aux|nul|com\d|lpt\d)$/i.test(base)) throw new Error(file);
    if (!/^attachment; filename="[!-~]+"$/.test(attachment(file))) throw new Error(file);
  };
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 100 }), check), { numRuns: 2000 });
  fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), check), { numRuns: 2000 });
  for (const name of nasty) t.doesNotThrow(() => check(name), label(name));
  t.end();
});

t.test('what is not a file’s name or an extension of ours goes into no header', (t) => {
  for (const text of breaking) t.throws(() => attachment(text), label(text));
  for (const extension of nasty) t.throws(() => fileName('a', peerId, extension));
  t.throws(() => fileName('', 'x"; y' as PeerId, 'conf'));
  t.end();
});
