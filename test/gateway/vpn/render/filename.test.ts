import fc from 'fast-check';
import t from 'tap';
import { attachment, fileName } from '../../../../gateway/vpn/render/filename.ts';
import type { PeerId } from '../../../../schemas/ids.ts';
import { breaking, label, nasty, peerId } from '../support.ts';

const own = 'peer-2e3f4a5b';

t.test('of a name what is fit stays', (t) => {
  const table: readonly (readonly [name: string, base: string])[] = [
    ['phone', 'phone'],
    ['a_b', 'a_b'],
    ['anna-laptop-1', 'anna-laptop-1'],
    ['Ann’s Phone', 'Ann-s-Phon-4a5b'],
    ['Zoë', 'Zoe-4a5b'],
    ['Phone', 'Phone-4a5b'],
    ['ﬁle ①', 'file-1-4a5b'],
    ['v1.2+x=y', 'v1-2-x-y-4a5b'],
    ['anna-macbook-pro-work', 'anna-macbo-4a5b'],
    ['0123456789abcd efg', '0123456789-4a5b'],
    ['012345678 abcdefg', '012345678-4a5b'],
    ['--x--', 'x-4a5b'],
    ['.hidden', 'hidden-4a5b'],
    ['Ａ', 'A-4a5b'],
    ['eth0', 'eth0-4a5b'],
    ['wlan0', 'wlan0-4a5b'],
    ['docker0', 'docker0-4a5b'],
    ['dev', 'dev-4a5b'],
    ['up', 'up-4a5b'],
    ['ty', 'ty-4a5b'],
    ['gso_max_size', 'gso_max_si-4a5b'],
    ['bonding_masters', 'bonding_ma-4a5b'],
    ['电话', own],
    ['', own],
    ['...', own],
    ['con', own],
    ['CON', own],
    ['nul.txt', 'nul-txt-4a5b'],
    ['LPT¹', own],
    ['com7', own],
    ['aux ', own],
    ['lo', own],
    ['default', own],
    ['COM10', 'COM10-4a5b'],
  ];
  for (const [name, base] of table) t.equal(fileName(name, peerId, 'conf'), `${base}.conf`, name);
  t.end();
});

t.test('two names never give one file', (t) => {
  const other = peerId.replace(/4a5b$/, '7c8d') as PeerId;
  const pairs = [
    ['anna-macbook-pro-work', 'anna-macbook-pro-home'],
    ['Anna', 'anna'],
    ['anna laptop', 'anna-laptop'],
    ['zoë', 'zoe'],
    ['电话', '手机'],
  ];
  for (const [one = '', two = ''] of pairs) {
    const files = [fileName(one, peerId, 'p12'), fileName(two, other, 'p12')].map((file) => file.toLowerCase());
    t.not(files[0], files[1], `${one}, ${two}`);
  }
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
