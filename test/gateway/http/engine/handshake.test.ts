import t from 'tap';
import { emptyBag, takeHeader } from '../../../../gateway/http/engine/guard.ts';
import { handshakeOf } from '../../../../gateway/http/engine/sockets/handshake.ts';

const good = {
  connection: 'keep-alive, Upgrade',
  upgrade: 'websocket',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-version': '13',
  'sec-websocket-protocol': 'a, b',
};

function bagOf(headers: Readonly<Record<string, string>>) {
  const bag = emptyBag();
  for (const [name, value] of Object.entries(headers)) takeHeader(bag, name, value);
  return bag;
}

t.test('a handshake', (t) => {
  const handshake = { key: good['sec-websocket-key'], version: '13', protocols: ['a', 'b'] };
  t.same(handshakeOf('GET', bagOf(good), true), handshake);
  t.same(handshakeOf('GET', bagOf({ ...good, upgrade: 'h2c, WebSocket', connection: 'UPGRADE' }), true), handshake);
  const { 'sec-websocket-protocol': _, ...plain } = good;
  t.same(handshakeOf('GET', bagOf(plain), true)?.protocols, []);
  t.end();
});

t.test('handshakes that are refused', (t) => {
  t.equal(handshakeOf('POST', bagOf(good), true), undefined, 'another method');
  t.equal(handshakeOf('GET', bagOf(good), false), undefined, 'with a body');
  t.equal(handshakeOf('GET', bagOf({ ...good, connection: 'close, Upgrade' }), true), undefined, 'that is to end');
  for (const name of ['connection', 'upgrade', 'sec-websocket-key'] as const) {
    const { [name]: _, ...without } = good;
    t.equal(handshakeOf('GET', bagOf(without), true), undefined, `without ${name}`);
  }
  for (const key of ['', 'abc', 'dGhlIHNhbXBsZSBub25jZQ', `${good['sec-websocket-key']}x`, 'a\r\nb'.padEnd(24, 'x')]) {
    t.equal(handshakeOf('GET', bagOf({ ...good, 'sec-websocket-key': key }), true), undefined, key);
  }
  t.end();
});

t.test('a key that comes twice is ambiguous', (t) => {
  const bag = bagOf(good);
  takeHeader(bag, 'sec-websocket-key', good['sec-websocket-key']);
  t.ok(bag.ambiguous);
  t.end();
});
