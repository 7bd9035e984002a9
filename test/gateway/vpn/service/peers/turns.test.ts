import t from 'tap';
import {
  TenantTurns,
  vpnKeysPerTenant,
  vpnKeysWaitingPerTenant,
} from '../../../../../gateway/vpn/service/peers/turns.ts';
import { PoolBusy } from '../../../../../gateway/vpn/pki/pool.ts';
import { systemClock } from '../../../../../lib/time/clock.ts';
import type { TenantId } from '../../../../../schemas/ids.ts';

const [acme, other] = ['acme' as TenantId, 'other' as TenantId];
const later = (): number => systemClock.monotonicMs() + 60_000;
const tick = (): Promise<void> => new Promise(setImmediate);

/** Work that begins when it has its turn, and ends when it is let. */
function workshop() {
  const begun: { readonly name: string; readonly end: (error?: Error) => void }[] = [];
  return {
    begun,
    names: () => begun.map(({ name }) => name),
    work: (name: string) => () =>
      new Promise<string>((resolve, reject) => {
        begun.push({ name, end: (error) => (error === undefined ? resolve(name) : reject(error)) });
      }),
  };
}

t.test('of each tenant a few at a time, in their order, whatever others ask', async (t) => {
  const turns = new TenantTurns(systemClock);
  const { begun, names, work } = workshop();
  const count = vpnKeysPerTenant + 3;
  const asked = Array.from({ length: count }, (_, number) => turns.run(acme, later(), work(`acme ${number}`)));
  await tick();
  t.equal(begun.length, vpnKeysPerTenant);
  const others = turns.run(other, later(), work('other'));
  await tick();
  t.equal(names().at(-1), 'other', 'it waits for nobody');
  begun[1]?.end(new Error('no key'));
  begun[0]?.end();
  await t.rejects(async () => void (await asked[1]), { message: 'no key' });
  await tick();
  t.same(
    names().slice(-2),
    [vpnKeysPerTenant, vpnKeysPerTenant + 1].map((number) => `acme ${number}`),
  );
  for (let index = 0; index < begun.length; index++) {
    begun[index]?.end();
    await tick();
  }
  t.equal(await others, 'other');
  t.equal((await Promise.allSettled(asked)).filter(({ status }) => status === 'fulfilled').length, count - 1);
  t.equal(turns.size, 0, 'and nothing is kept of them');
});

t.test('a request that waits too long, or behind too many, is refused', async (t) => {
  const turns = new TenantTurns(systemClock);
  const { begun, names, work } = workshop();
  const asked = Array.from({ length: vpnKeysPerTenant }, () => turns.run(acme, later(), work('held')));
  await t.rejects(turns.run(acme, systemClock.monotonicMs() - 1, work('late')), new PoolBusy('late'));
  const waiting = Array.from({ length: vpnKeysWaitingPerTenant }, () => turns.run(acme, later(), work('next')));
  await t.rejects(turns.run(acme, later(), work('full')), new PoolBusy('full'));
  for (let index = 0; index < asked.length + waiting.length; index++) {
    begun[index]?.end();
    await tick();
  }
  await Promise.all([...asked, ...waiting]);
  t.notOk(names().includes('late'), 'what was given up is not begun');
  t.equal(turns.size, 0);
});
