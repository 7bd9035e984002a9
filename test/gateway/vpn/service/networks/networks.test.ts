import t from 'tap';
import { Refusal } from '../../../../../gateway/vpn/service/refusal.ts';
import { networkPlace } from '../../../../../gateway/vpn/service/networks/authority.ts';
import type { AskedSettings } from '../../../../../gateway/validation/network.ts';
import type { NetworkRecord } from '../../../../../schemas/api/network.ts';
import type { NetworkName, TenantId } from '../../../../../schemas/ids.ts';
import { limits } from '../../../../../schemas/limits.ts';
import { okData, okMaterial, refusal, type AnswerOf } from '../../../support.ts';
import { forageWith, networkNow, nowMs, vault, type Answers } from '../../forage.ts';
import { certificateSpanMaxMs } from '../../../../../gateway/vpn/service/renewal.ts';

const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };
const { tenants: _, ...asked } = networkNow().settings;
const acme = 'acme' as TenantId;
const listed =
  (...data: object[]) =>
  () => ({ code: 'ok' as const, body: JSON.stringify({ data, more: false }) });

t.test('a new network serves the tenants that it names; without any the default one serves all', async (t) => {
  const settingsOf = async (name: string, settings: AskedSettings) => {
    const { forage, keyring, asked } = forageWith({
      'network.get': () => refusal('not_found'),
      'network.list': listed(),
      'network.create': () => okData({}, 'created'),
    });
    const network = name as NetworkName;
    await forage.networks.create(asker, { name: network, settings, nameConstraints: false }, keyring);
    const question = asked.map((one) => one.question).find(({ type }) => type === 'network.create');
    if (question?.type !== 'network.create') throw new Error('no network is made');
    t.equal(vault.open(networkPlace(network, 'ca'), question.made.ca.privateKey), 'ca key', 'sealed for its place');
    return question.made.settings.tenants;
  };
  t.same(await settingsOf('office', asked), []);
  t.equal(await settingsOf('default', asked), null);
  t.same(await settingsOf('default', { ...asked, tenants: [acme] }), [acme]);
});

t.test('a name that is taken costs no key', async (t) => {
  const { forage, keyring, jobs } = forageWith({ 'network.get': () => okData({ name: 'demo', tenants: null }) });
  const made = { name: 'demo' as NetworkName, settings: asked, nameConstraints: false };
  await t.rejects(forage.networks.create(asker, made, keyring), { name: 'Refusal', result: { code: 'conflict' } });
  t.same(jobs, []);
});

t.test('pools that another network on the server has cost no key', async (t) => {
  const certificate = { serial: '1', not_before: 'x', not_after: 'x' };
  const other = {
    name: 'vpa',
    endpoint: asked.endpoint,
    wireguard_port: asked.wireguard_port,
    ipv4_pool: asked.ipv4_pool,
    ipv6_pool: null,
    ca_certificate: certificate,
    server_certificate: certificate,
  };
  const { forage, keyring, jobs } = forageWith({
    'network.get': () => refusal('not_found'),
    'network.list': listed(other),
    'network.material': () =>
      okMaterial({ ...networkNow({ endpoint: 'old.example.com' }), name: 'lab' as NetworkName }),
  });
  const made = { name: 'lab' as NetworkName, settings: asked, nameConstraints: false };
  const refused = (fault: string) => ({ name: 'Refusal', result: { code: 'invalid', body: new RegExp(fault) } });
  await t.rejects(forage.networks.create(asker, made, keyring), refused('overlaps that of network vpa'));
  await t.rejects(forage.networks.put(asker, made.name, asked, keyring), refused('is that of network vpa'));
  t.same(jobs, []);
});

t.test('a port that another network on the server has is refused where it is new', async (t) => {
  const certificate = { serial: '1', not_before: 'x', not_after: 'x' };
  const { wireguard_port, endpoint } = asked;
  const other = {
    ...{ name: 'vpa', endpoint, wireguard_port, ipv4_pool: '10.91.0.0/24', ipv6_pool: null },
    ...{ ca_certificate: certificate, server_certificate: certificate },
  };
  const { forage, keyring, types } = forageWith({
    'network.list': listed(other),
    'network.material': () => okMaterial({ ...networkNow({ wireguard_port: 1 }), name: 'lab' as NetworkName }),
  });
  const put = forage.networks.put(asker, 'lab' as NetworkName, asked, keyring);
  const body = /"wireguard_port":\["is that of network vpa, which has the same endpoint/;
  await t.rejects(put, { name: 'Refusal', result: { code: 'invalid', body } });
  t.notOk(types().includes('network.put'));
});

t.test('what was written beside a network of the same moment is taken back', async (t) => {
  const certificate = { serial: '1', not_before: 'x', not_after: 'x' };
  const { wireguard_port, endpoint } = asked;
  const other = {
    ...{ name: 'vpa', endpoint, wireguard_port, ipv4_pool: '10.91.0.0/24', ipv6_pool: null },
    ...{ ca_certificate: certificate, server_certificate: certificate },
  };
  const before = networkNow({ endpoint: 'old.example.com' });
  const { name } = before;
  const written = async (write: 'create' | 'put', answers: Answers = {}) => {
    let now = before;
    let isOther = false;
    const {
      forage,
      keyring,
      asked: questions,
    } = forageWith({
      'network.get': () => refusal('not_found'),
      'network.list': () => (isOther ? listed(other)() : listed()()),
      'network.material': () => okMaterial(now),
      'network.create': () => ((isOther = true), okData({}, 'created')),
      'network.put': (question) => {
        if (question.type === 'network.put') now = { ...now, settings: question.settings };
        isOther = true;
        return okData({});
      },
      'network.remove': () => ({ code: 'no_content', body: '' }),
      ...answers,
    });
    const made = { name, settings: asked, nameConstraints: false };
    const cause = {
      by: { tenant: acme, subject: 'ann', token: 't', address: 'a' },
      action: `network.${write}`,
      target: {},
    };
    const by = { ...asker, cause };
    const outcome =
      write === 'create' ? forage.networks.create(by, made, keyring) : forage.networks.put(by, name, asked, keyring);
    const result = await outcome.then(
      ({ code }) => code,
      (error: unknown) => (error instanceof Refusal ? error.result : error),
    );
    return {
      result,
      last: questions
        .map(({ question }) => question)
        .findLast(({ type }) => type.startsWith('network.') && type !== 'network.list'),
    };
  };
  const refused = { code: 'invalid', body: /"wireguard_port":\["is that of network vpa/ };
  t.match(await written('create'), {
    result: refused,
    last: { type: 'network.remove', network: name, cause: { action: 'network.remove' } },
  });
  t.match(await written('put'), {
    result: refused,
    last: { type: 'network.put', settings: before.settings, server: { serial: before.server.serial } },
  });
  const changedSince = { 'network.material': () => okMaterial(networkNow({ wireguard_port: 1 })) };
  t.match(await written('put', changedSince), { result: refused, last: { type: 'network.material' } });
  const unknown = { code: 'timeout' };
  t.match(await written('create', { 'network.remove': () => refusal('unavailable') }), { result: unknown });
  let lists = 0;
  const away = { 'network.list': () => (++lists > 2 ? refusal('unavailable') : listed()()) };
  t.match(await written('create', away), { result: unknown, last: { type: 'network.create' } });
});

t.test('new settings keep tenants that they do not name; a new endpoint is a new certificate', async (t) => {
  const put = async (settings: AskedSettings) => {
    const { forage, keyring, asked, jobs } = forageWith({
      'network.material': () => okMaterial(networkNow({ tenants: [acme] })),
      'network.list': listed(),
      'network.put': () => okData({}),
    });
    await forage.networks.put(asker, 'demo' as NetworkName, settings, keyring);
    return { question: asked.map((one) => one.question).find(({ type }) => type === 'network.put'), jobs };
  };
  const kept = await put(asked);
  t.match(kept.question, { settings: { tenants: [acme] }, keepsTenants: true, server: null });
  t.same(kept.jobs, []);
  const opened = await put({ ...asked, tenants: null });
  t.match(opened.question, { settings: { tenants: null }, server: null });
  t.notOk('keepsTenants' in (opened.question ?? {}));
  const moved = await put({ ...asked, endpoint: 'new.example.com' });
  t.match(moved.question, { server: { serial: '0a' } });
  t.match(moved.jobs, [{ kind: 'server', input: { endpoint: 'new.example.com', privateKeyPem: 'server key' } }]);
});

t.test(
  'certificates near their end are renewed, the authority’s first; who comes second takes the other’s',
  async (t) => {
    const ending = (which: 'ca' | 'server', leftMs = 1): Partial<NetworkRecord> => ({
      [which]: { ...networkNow()[which], notAfterMs: nowMs + leftMs },
    });
    const fresh = async (change: Partial<NetworkRecord>, certify: () => AnswerOf = () => okData(networkNow())) => {
      const { forage, keyring, jobs, types } = forageWith({
        'network.certify': certify,
        'network.material': () => okMaterial({ ...networkNow(), ...change }),
      });
      const network = await forage.networks.fresh(asker, networkNow().name, keyring);
      return { network, made: jobs.map(({ kind }) => kind), types: types() };
    };
    t.same((await fresh({})).made, []);
    t.match(await fresh(ending('ca')), { made: ['ca'], types: ['network.material', 'network.certify'] });
    t.same((await fresh(ending('server'))).made, ['server']);
    const both = { ...ending('ca'), ...ending('server') };
    t.same((await fresh(both, () => okData({ ...networkNow(), ...ending('server') }))).made, ['ca', 'server']);
    t.match(await fresh(ending('ca'), () => refusal('conflict')), {
      types: ['network.material', 'network.certify', 'network.material'],
    });
    const late = limits.caLifetimeMs * limits.certificateRenewFraction;
    t.same((await fresh(ending('ca', late))).made, [], 'not yet');
    t.same((await fresh(ending('ca', late - 1))).made, ['ca']);
    const long = { ...networkNow().server, notBeforeMs: nowMs, notAfterMs: nowMs + certificateSpanMaxMs };
    t.same((await fresh({ server: long })).made, ['server'], 'one that Apple refuses');
  },
);
