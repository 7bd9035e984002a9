import t from 'tap';
import { networkRoutes } from '../../../gateway/operator/networks.ts';
import { resealRoutes } from '../../../gateway/operator/reseal.ts';
import { encodeKeyCursor } from '../../../schemas/api/cursor.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import { callOf, exchangeOf } from '../calls.ts';
import { okMaterial, refusal } from '../support.ts';
import { forageWith, networkNow } from '../vpn/forage.ts';
import { caPem } from '../vpn/support.ts';

const params = { network: 'demo' as NetworkName };
const material = { 'network.material': () => okMaterial(networkNow()) };
const none = () => ({ code: 'ok', body: '{"data":[],"more":false}' }) as const;

t.test('a list asks every partition for what follows the cursor, and is whole or not at all', async (t) => {
  const query = { limit: 10, cursor: encodeKeyCursor('demo') };
  const { forage, asked } = forageWith({ 'network.list': none });
  t.match(await networkRoutes(forage)['network.list'](callOf('network.list', { query })), { body: '{"data":[]}' });
  t.same(
    asked.map(({ question }) => question),
    [0, 1].map((partition) => ({ type: 'network.list', partition, limit: 10, after: 'demo', rid: 'r' })),
  );
  const away = forageWith({
    'network.list': (question) => ('partition' in question && question.partition === 1 ? refusal('timeout') : none()),
  });
  t.match(await networkRoutes(away.forage)['network.list'](callOf('network.list', { query })), { code: 'timeout' });
});

t.test('a list refuses a cursor that it did not give, and asks nobody', async (t) => {
  const { forage, asked } = forageWith({});
  const list = networkRoutes(forage)['network.list'];
  for (const cursor of ['x', encodeKeyCursor('No Name')]) {
    t.match(await list(callOf('network.list', { query: { limit: 10, cursor } })), { code: 'invalid', body: /cursor/ });
  }
  t.same(asked, []);
});

t.test('a file of the server is sent again only when it has changed', async (t) => {
  const { forage } = forageWith(material);
  const { 'network.ca': ca } = networkRoutes(forage);
  const first = await ca(callOf('network.ca', { params }));
  t.match(first, { code: 'ok', body: caPem, headers: ['content-type', 'application/x-pem-file'] });
  const headers = first === 'streamed' ? [] : (first.headers ?? []);
  const ifNoneMatch = headers[headers.indexOf('etag') + 1] ?? '';
  const second = await ca(callOf('network.ca', { params, exchange: exchangeOf({ headers: { ifNoneMatch } }) }));
  t.match(second, { code: 'not_modified', body: '' });
});

t.test('the server’s key is opened; without VPN keys no file is served', async (t) => {
  const { forage } = forageWith(material);
  const call = callOf('network.server_key', { params });
  t.match(await networkRoutes(forage)['network.server_key'](call), { code: 'ok', body: 'server key' });
  const { forage: keyless, asked } = forageWith(material);
  const none = { ...keyless, keyring: undefined };
  t.match(await networkRoutes(none)['network.server_key'](call), { code: 'unavailable', body: /VAULT_KEYS/ });
  t.match(await resealRoutes(none)['secret.reseal'](callOf('secret.reseal')), { code: 'unavailable' });
  t.same(asked, []);
});
