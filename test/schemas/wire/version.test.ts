/** docs/upgrades.md: this release, the one before and the one after understand one another. */
import t from 'tap';
import Type from 'typebox';
import { DecodeError, messageDecoder } from '../../../lib/decode.ts';
import { decodeAsks } from '../../../lib/rpc/decode.ts';
import { countAsks, decodeAnswerPart, decodeAnswers, encodeAnswers, encodeAsks } from '../../../schemas/wire/codec.ts';
import { ProtocolError, protocolOf, protocolVersion, protocolFields } from '../../../schemas/wire/version.ts';

const ask = { type: 'tenant.get', tenant: 'acme', rid: 'r', budgetMs: 5000 };
const line = JSON.stringify(ask);
const bytesOf = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

t.test('a message without a version is refused', (t) => {
  t.equal(protocolOf(protocolFields), protocolVersion);
  for (const message of [{}, null, 'text']) t.throws(() => protocolOf(message), /is of protocol unknown/);
  t.end();
});

t.test('one release away is understood, two are refused with what to do', (t) => {
  for (const protocol of [protocolVersion - 1, protocolVersion, protocolVersion + 1])
    t.equal(protocolOf({ protocol }), protocol);
  for (const protocol of [protocolVersion - 2, protocolVersion + 2, 2.5, '2', null]) {
    t.throws(() => protocolOf({ protocol }), ProtocolError, `${protocol}`);
    t.throws(() => protocolOf({ protocol }), /understands 3 to 5: upgrade one release at a time/);
  }
  t.end();
});

t.test('a batch of asks says the version once', (t) => {
  const payload = encodeAsks([line, line]);
  t.same(decodeAsks(payload), [{ ...ask, ...protocolFields }, ask]);
  t.throws(() => decodeAsks(`${line}\n${line}`), ProtocolError);
  const later = payload.replace(`"protocol":${protocolVersion}`, '"protocol":9');
  t.throws(() => decodeAsks(later), ProtocolError);
  t.equal(countAsks(later), 2);
  t.type(decodeAsks('')[0], DecodeError);
  t.end();
});

t.test('a batch of answers says the version', (t) => {
  const lines = ['0\tok\t{"data":1}', '1\tnot_found\t'];
  const decoded = [
    { index: 0, code: 'ok', body: '{"data":1}' },
    { index: 1, code: 'not_found', body: '' },
  ];
  t.same(decodeAnswers(encodeAnswers(lines)), decoded);
  t.throws(() => decodeAnswers(`9\n${lines.join('\n')}`), ProtocolError);
  t.throws(() => decodeAnswers(lines.join('\n')), ProtocolError);
  t.end();
});

t.test('a batch of answers says who answers', (t) => {
  const lines = ['0\tok\t{"data":1}'];
  const answers = [{ index: 0, code: 'ok', body: '{"data":1}' }];
  t.same(decodeAnswerPart(encodeAnswers(lines, 'one')), { answers, protocol: protocolVersion, owner: 'one' });
  for (const [head, owner] of [
    ['3\n', undefined],
    ['3 one more of the next release\n', 'one'],
    ['3 a.b\n', undefined],
    ['3 >\n', undefined],
    [`3 ${'x'.repeat(65)}\n`, undefined],
  ] as const)
    t.same(decodeAnswerPart(`${head}${lines.join('\n')}`), { answers, protocol: 3, owner }, head);
  t.throws(() => decodeAnswerPart(`9 one\n${lines.join('\n')}`), ProtocolError);
  t.end();
});

t.test('a version that is not understood counts before the shape', (t) => {
  const decode = messageDecoder(Type.Object({ v: Type.Literal(1) }));
  t.same(decode(bytesOf({ v: 1, ...protocolFields })), { v: 1, ...protocolFields });
  t.throws(() => decode(bytesOf({ v: 2, ...protocolFields })), DecodeError);
  t.throws(() => decode(bytesOf({ v: 2, protocol: 9 })), ProtocolError);
  t.end();
});
