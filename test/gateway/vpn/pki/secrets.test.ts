/** Random secrets have the right form and an even distribution. */
import t from 'tap';
import { newPassword, newPresharedKey, newSerial, passwordAlphabet } from '../../../../gateway/vpn/pki/secrets.ts';

t.test('preshared keys are 32 bytes', (t) => {
  const keys = Array.from({ length: 50 }, newPresharedKey);
  t.ok(keys.every((key) => Buffer.from(key, 'base64').length === 32 && /^[A-Za-z0-9+/]{43}=$/.test(key)));
  t.equal(new Set(keys).size, 50);
  t.end();
});

t.test('passwords', (t) => {
  t.equal(new Set(passwordAlphabet).size, passwordAlphabet.length);
  t.notMatch(passwordAlphabet, /[0O1lIo|]|[^A-Za-z0-9]/, 'nothing that can be taken for something else');
  const passwords = Array.from({ length: 3000 }, newPassword);
  t.ok(passwords.every((password) => password.length === 18));
  const counts = new Map<string, number>();
  for (const letter of passwords.join('')) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  t.same([...counts.keys()].sort(), [...passwordAlphabet].sort(), 'of these letters and of all of them');
  // 54,000 letters: 964 of each, with a standard deviation of 31. Modulo of a byte would give some
  // 844 and others 1,055.
  const [least, most] = [Math.min(...counts.values()), Math.max(...counts.values())];
  t.ok(least > 964 - 6 * 31 && most < 964 + 6 * 31, `${least} to ${most}`);
  t.ok(Math.log2(passwordAlphabet.length) * 18 > 100, 'over 100 bits');
  t.end();
});

t.test('serial numbers are positive and have no byte to spare', (t) => {
  const serials = Array.from({ length: 2000 }, () => newSerial());
  t.ok(serials.every((serial) => /^(?!00)[0-7][0-9a-f]{31}$/.test(serial)));
  t.equal(new Set(serials).size, 2000);
  const drawn = [0x80, 0xff, 0x00, 0x01].map((first) => Buffer.from([first, ...Array<number>(15).fill(0xee)]));
  t.equal(
    newSerial(() => drawn.shift() ?? Buffer.alloc(0)),
    `01${'ee'.repeat(15)}`,
    'negative ones and leading zeros are drawn again',
  );
  const highest = Buffer.from([0x7f, ...Array<number>(15).fill(0xff)]);
  t.equal(
    newSerial(() => highest),
    `7f${'ff'.repeat(15)}`,
  );
  t.end();
});
