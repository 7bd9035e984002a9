import t from 'tap';
import { conflict } from '../../../../gateway/http/respond.ts';
import { PoolBusy } from '../../../../gateway/vpn/pki/pool.ts';
import { SealError } from '../../../../gateway/vault/vault.ts';
import { keyringOf } from '../../../../gateway/vpn/service/keyring.ts';
import { Refusal, refusing } from '../../../../gateway/vpn/service/refusal.ts';
import { callOf } from '../../calls.ts';
import { recordingLog } from '../../support.ts';

t.test('a step that cannot go on answers the request; a bug does not', async (t) => {
  const log = recordingLog();
  const call = callOf('network.ca');
  const thrown = (error: Error) => refusing<'network.ca'>(log, () => Promise.reject(error))(call);
  t.match(await thrown(new Refusal(conflict('exists', 'x'))), { code: 'conflict' });
  t.match(await thrown(new PoolBusy('full')), { code: 'unavailable' });
  t.match(await thrown(new SealError('unknown_key')), { code: 'unavailable' }, 'another gateway may have the key');
  t.match(await thrown(new SealError('damaged')), { code: 'internal' });
  t.match(log.events, [{ event: 'secret_open_failed' }, { event: 'secret_open_failed', fields: { why: 'damaged' } }]);
  await t.rejects(Promise.resolve(thrown(new TypeError('bug'))), TypeError);
});

t.test('without VPN keys the area is unavailable', (t) => {
  t.throws(() => keyringOf(undefined), { name: 'Refusal', message: 'answered unavailable' });
  t.end();
});
