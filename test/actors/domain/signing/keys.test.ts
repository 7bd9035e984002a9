/** The keys that the cluster signs with: one is current, others stay for their tokens (ADR 41). */
import t from 'tap';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { SigningKeyPage } from '../../../../schemas/wire/answers.ts';
import { bodyOf, sealedAs, secretWorld } from '../../support/secrets.ts';
import { signingKeysMax, signingKeyRestMs } from '../../../../actors/domain/signing/keys.ts';

const lifeMaxMs = 60_000;

function signingWorld() {
  const world = secretWorld();
  return {
    ...world,
    make: (id: string, replaces: string | null, more: { endOthers?: boolean; lifeMaxMs?: number } = {}) =>
      world.write({
        type: 'signing_key.put',
        partition: 0,
        key: { id, sealed: sealedAs(id) },
        replaces,
        lifeMaxMs,
        endOthers: false,
        ...more,
      }).reply,
    list: () => (bodyOf(world.read({ type: 'signing_key.list', partition: 0 })) as { data: SigningKeyPage }).data,
  };
}

t.test('the first key is made once, and each next one replaces the current one', (t) => {
  const world = signingWorld();
  t.same(world.list(), []);
  t.equal(world.make('one', null).code, 'created');
  t.equal(world.make('other', null).code, 'precondition_failed', 'another gateway was first');
  t.equal(world.make('two', 'one').code, 'created');
  t.equal(world.make('three', 'one').code, 'precondition_failed');
  const [one, two] = world.list();
  t.match(two, { id: 'two', sealed: sealedAs('two'), untilMs: null });
  t.ok((one?.untilMs ?? 0) >= 1_000_000 + lifeMaxMs + signingKeyRestMs, 'as long as its tokens may live');
  t.equal(world.make('two', 'two').code, 'precondition_failed', 'no id comes twice');
  t.end();
});

t.test('a key goes when its tokens have ended, or when an operator ends it', (t) => {
  const world = signingWorld();
  const over = { lifeMaxMs: -signingKeyRestMs };
  world.make('one', null);
  world.make('two', 'one', over);
  world.make('three', 'two');
  t.same(
    world.list().map(({ id }) => id),
    ['two', 'three'],
    'one has ended',
  );
  world.make('four', 'three', { endOthers: true });
  t.match(world.list(), [{ id: 'four', untilMs: null }]);
  t.equal(world.list().length, 1);
  t.end();
});

t.test('there is a bound, and ending the others makes room', (t) => {
  const world = signingWorld();
  for (let index = 0; index < signingKeysMax; index++) {
    t.equal(world.make(`k${index}`, index === 0 ? null : `k${index - 1}`).code, 'created');
  }
  const last = `k${signingKeysMax - 1}`;
  t.match(world.make('more', last), { code: 'conflict', body: /end_others/ });
  t.equal(world.make('more', last, { endOthers: true }).code, 'created');
  t.end();
});

t.test('in place of a damaged current key another is made', (t) => {
  const world = signingWorld();
  world.make('one', null);
  world.state.quarantine(keys.signingKey('one'));
  t.match(world.list(), [{ id: 'one', sealed: null }]);
  t.equal(world.make('two', null).code, 'created');
  t.match(world.list(), [{ id: 'one', sealed: null }, { id: 'two' }]);
  t.end();
});
