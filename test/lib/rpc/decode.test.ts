/** Asks and answers at the boundary: valid ones pass; a refused line spoils no other. */
import t from 'tap';
import { DecodeError } from '../../../lib/decode.ts';
import { decodeAnswer, decodeAsk, decodeAsks } from '../../../lib/rpc/decode.ts';
import { encodeAsks } from '../../../schemas/wire/codec.ts';

const asker = { rid: 'r', budgetMs: 100 };
const get = { type: 'container.get', tenant: 'acme', id: 'c', ...asker };
const spec = {
  name: 'web',
  host_key: null,
  registry: 'docker.io',
  repository: 'nginx',
  tag: 'latest',
  digest: null,
  pull_policy: 'if_not_present',
  ports: [80, '53/udp'],
  env: { A: 'b' },
  cpu_limit: '0.5',
  mem_limit: '256m',
};
const create = { type: 'container.create', tenant: 'acme', id: 'c', op: 'o', spec, idempotency: null, ...asker };

t.test('an ask that has its fields passes, and keeps fields of the next release', (t) => {
  for (const ask of [get, create, { ...get, later: true }, { ...create, spec: { ...spec, later: 1 } }]) {
    t.same(decodeAsk(JSON.stringify(ask)), ask);
  }
  t.end();
});

t.test('an ask that lacks something is refused, and the error says what', (t) => {
  const rows: readonly (readonly [string, unknown, RegExp])[] = [
    ['no JSON', '{', /not JSON/],
    ['null', null, /no such ask/],
    ['an unknown type', { ...get, type: 'container.fly' }, /no such ask: container\.fly/],
    ['a name of every object', { ...get, type: 'constructor' }, /no such ask/],
    ['no request id', { ...get, rid: undefined }, /id of its request/],
    ['no budget', { ...get, budgetMs: 'soon' }, /budget/],
    ['no container', { ...get, id: 7 }, /container\.get: \/id/],
    ['a write without its operation', { ...create, op: undefined }, /id of its operation/],
    ['a spec with a wrong field', { ...create, spec: { ...spec, env: { A: 1 } } }, /container\.create: \/spec\/env/],
  ];
  for (const [name, ask, error] of rows) {
    t.throws(() => decodeAsk(typeof ask === 'string' ? ask : JSON.stringify(ask)), error, name);
  }
  t.end();
});

t.test('a malformed ask costs nobody else of its batch', (t) => {
  const asks = decodeAsks(encodeAsks([JSON.stringify(get), `{"type":`, JSON.stringify(create)]));
  const [first, second, third] = asks;
  t.match(first, { type: 'container.get' });
  t.type(second, DecodeError);
  t.match(third, { type: 'container.create' });
  t.end();
});

t.test('the body of an answer is decoded by the entry of its ask', (t) => {
  const grant = { data: { tenant: 'acme', peer: 'p', scope: 'download' } };
  t.same(decodeAnswer('token.resolve', JSON.stringify(grant)), grant);
  t.throws(() => decodeAnswer('token.resolve', '{"data":{"tenant":"acme"}}'), /answer to token\.resolve: \/data/);
  t.throws(() => decodeAnswer('peer.forgo', ''), /not JSON/);
  t.same(decodeAnswer('network.learn', '{"data":null}'), { data: null });
  t.end();
});
