/** Memory for bodies while they arrive, and its shares for clients and tenants. */
import fc from 'fast-check';
import t from 'tap';
import { Bodies, Body, type BodyResult } from '../../../../gateway/http/engine/body.ts';
import { limits } from '../../../../schemas/limits.ts';

const clock = { nowMs: () => 0, monotonicMs: () => 0 };
const bytes = (count: number, fill = 0x20): Uint8Array => new Uint8Array(count).fill(fill);

function bodyOf(bodies: Bodies, declaredBytes: number | undefined, maxBytes: number = limits.bodyBytes, client = 'a') {
  const body = new Body(bodies, declaredBytes);
  body.expect(maxBytes, client);
  let result: BodyResult | undefined;
  body.whenKnown((known) => (result = known));
  return { body, result: () => result };
}

t.test('a body is one buffer, however small its pieces', (t) => {
  const bodies = new Bodies(clock);
  const { body, result } = bodyOf(bodies, undefined);
  for (let n = 1; n < limits.bodyPieces; n++) {
    body.push(bytes(64), false);
    if (bodies.room.taken > 2 * 64 * n) return void t.fail(`${bodies.room.taken} bytes for ${n} pieces`);
  }
  t.equal(result(), undefined);
  body.push(bytes(0), true);
  const whole = result() as Uint8Array;
  t.equal(whole.byteLength, 64 * (limits.bodyPieces - 1));
  t.ok(whole.buffer.byteLength <= 2 * whole.byteLength);
  t.equal(bodies.room.taken, 0, 'what was handed out is not held');
  t.end();
});

t.test('a declared length takes no memory before it comes, and no more than it says', (t) => {
  const bodies = new Bodies(clock);
  const { body, result } = bodyOf(bodies, 1000);
  t.equal(bodies.room.taken, 0);
  body.push(bytes(600), false);
  t.equal(bodies.room.taken, 600);
  body.push(bytes(100), false);
  t.equal(bodies.room.taken, 1000, 'not the double');
  body.push(bytes(300), false);
  t.equal((result() as Uint8Array).buffer.byteLength, 1000, 'whole with its last byte');
  t.ok(body.whole());
  t.end();
});

t.test('pieces are copied', (t) => {
  for (const pieces of [1, 2]) {
    const { body, result } = bodyOf(new Bodies(clock), 4 * pieces);
    const wire = Buffer.alloc(4096, 'x').subarray(8, 12);
    for (let n = 0; n < pieces; n++) body.push(wire, false);
    wire.fill('y');
    const whole = result() as Uint8Array;
    t.equal(Buffer.from(whole).toString(), 'x'.repeat(4 * pieces));
    t.equal(whole.buffer.byteLength, 4 * pieces, 'nothing else is kept with it');
  }
  t.end();
});

t.test('512 KiB in the segments of Ethernet, or of the smallest networks, are taken', (t) => {
  for (const segment of [1460, 536]) {
    const { body, result } = bodyOf(new Bodies(clock), limits.bodyBytes);
    for (let left: number = limits.bodyBytes; left > 0; left -= segment)
      body.push(bytes(Math.min(left, segment)), false);
    t.equal((result() as Uint8Array).byteLength, limits.bodyBytes, `${segment}`);
  }
  t.end();
});

t.test('the number of pieces has a bound', (t) => {
  const { body, result } = bodyOf(new Bodies(clock), undefined);
  for (let n = 0; n < limits.bodyPieces; n++) if (!body.push(bytes(1), false)) t.fail();
  t.equal(result(), undefined);
  t.ok(body.push(bytes(1), false), 'it is answered');
  t.equal(result(), 'too_many_pieces');
  t.ok(body.ended());
  t.notOk(body.whole());
  let more = 0;
  while (body.push(bytes(1), false)) more++;
  t.equal(more, limits.bodyPieces - 1, 'and then cut off');
  t.end();
});

t.test('clients and tenants have their shares, and each full share its own refusal', (t) => {
  const bodies = new Bodies(clock);
  const half = limits.bodyBytes;
  const fill = (count: number, client: (n: number) => string, tenant?: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => {
      const held = bodyOf(bodies, undefined, half, client(n));
      if (tenant !== undefined) held.body.claim(tenant(n));
      held.body.push(bytes(half), false);
      return held;
    });
  const share = limits.bodiesHeldPerClientBytes / half;
  const ofClient = fill(share + 1, () => 'a');
  t.same([...new Set(ofClient.map(({ result }) => result()))], [undefined, 'client']);
  ofClient.forEach(({ body }) => body.abort());
  t.equal(bodies.room.taken, 0);

  const ofTenant = fill(
    share + 1,
    (n) => `c${n}`,
    () => 'acme',
  );
  t.equal(ofTenant.at(-1)?.result(), 'tenant');
  const late = fill(1, () => 'late')[0]!;
  late.body.claim('acme');
  t.equal(late.result(), 'tenant', 'claimed when it is there already');
  const all = fill(limits.bodiesHeldBytes / half, (n) => `d${n}`);
  t.equal(all.at(-1)?.result(), 'full');
  const { body, result } = bodyOf(bodies, 10);
  body.push(bytes(10), true);
  t.equal((result() as Uint8Array).byteLength, 10, 'what comes whole needs no room');
  t.end();
});

t.test('an unread whole body is held until it is read or discarded', (t) => {
  for (const end of ['read', 'discard', 'abort'] as const) {
    const bodies = new Bodies(clock);
    const body = new Body(bodies, 10);
    body.expect(100, 'a');
    body.push(bytes(10), true);
    t.equal(bodies.room.taken, 10);
    if (end === 'read') body.whenKnown((known) => t.equal((known as Uint8Array).byteLength, 10));
    else body[end]();
    t.equal(bodies.room.taken, 0, end);
  }
  const bodies = new Bodies(clock);
  const late = new Body(bodies, limits.bodyBytes);
  late.expect(limits.bodyBytes, 'b');
  late.push(bytes(limits.bodyBytes), true);
  for (let n = 0; n < limits.bodiesHeldPerTenantBytes / limits.bodyBytes; n++) {
    const { body } = bodyOf(bodies, undefined, limits.bodyBytes, `c${n}`);
    body.claim('acme');
    body.push(bytes(limits.bodyBytes), false);
  }
  const taken = bodies.room.taken;
  late.claim('acme');
  late.whenKnown((known) => t.equal(known, 'tenant', 'the tenant was known only when it was full'));
  t.equal(bodies.room.taken, taken - limits.bodyBytes);
  t.end();
});

t.test('whatever comes in whatever pieces: nothing is held afterwards, and the bytes are those that came', (t) => {
  const request = fc.record({
    pieces: fc.array(fc.nat({ max: 400 }), { maxLength: 30 }),
    isDeclared: fc.boolean(),
    isAwaited: fc.boolean(),
    maxBytes: fc.integer({ min: 1, max: 4000 }),
  });
  fc.assert(
    fc.property(request, ({ pieces, isDeclared, isAwaited, maxBytes }) => {
      const bodies = new Bodies(clock);
      const sent = pieces.map((size, n) => bytes(size, n));
      const total = pieces.reduce((sum, size) => sum + size, 0);
      const body = new Body(bodies, isDeclared && total > 0 ? total : undefined);
      body.expect(maxBytes, 'a');
      let result: BodyResult | undefined;
      if (isAwaited) body.whenKnown((known) => (result = known));
      for (const piece of sent) {
        body.push(piece, false);
        if (bodies.room.taken > Math.min(maxBytes, 2 * total)) return false;
      }
      body.push(bytes(0), true);
      if (!isAwaited) body.whenKnown((known) => (result = known));
      if (bodies.room.taken !== 0 || bodies.arriving.size !== 0) return false;
      return total > maxBytes ? result === 'too_large' : Buffer.concat(sent).equals(result as Uint8Array);
    }),
  );
  t.end();
});
