import t from 'tap';
import { PeerKeyMaker } from '../../../../../gateway/vpn/service/peers/keys.ts';
import { placeOf } from '../../../../../gateway/vpn/service/peers/owner.ts';
import type { TenantId } from '../../../../../schemas/ids.ts';
import { limits } from '../../../../../schemas/limits.ts';
import { forageWith, networkNow, nowMs, peerNow, vault } from '../../forage.ts';
import { baseUrl, caPem, keys, localId, peerId } from '../../support.ts';

const owner = { tenant: 'demo' as TenantId, peer: peerId };
const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };
const year = limits.certificateLifetimeMs;
const maker = new PeerKeyMaker({ clock: { nowMs: () => nowMs, monotonicMs: () => 0 }, publicUrl: () => baseUrl });
const networkUntil = (notAfterMs: number) => ({ ...networkNow(), ca: { ...networkNow().ca, notAfterMs } });

t.test('a certificate ends after its life, with its peer or with its authority, whichever is first', async (t) => {
  const rows: [expiresAtMs: number | null, authorityMs: number, endMs: number][] = [
    [null, nowMs + 2 * year, nowMs + year],
    [nowMs + 5, nowMs + 2 * year, nowMs + 5],
    [nowMs + 3 * year, nowMs + 2 * year, nowMs + year],
    [null, nowMs + 7, nowMs + 7],
  ];
  for (const [expiresAtMs, authorityMs, notAfterMs] of rows) {
    const { keyring, jobs } = forageWith({});
    const network = networkUntil(authorityMs);
    await maker.make(asker, owner, { localId, network, expiresAtMs }, keyring);
    await maker.renew(asker, peerNow({ expiresAtMs }), network, keyring);
    const notBeforeMs = nowMs - limits.certificateBackdateMs;
    const same = { localId, crlUrl: `${baseUrl}/api/forage/crl/demo`, caPem, caKeyPem: 'ca key' };
    t.match(jobs, [
      { kind: 'peer', input: { ...same, notBeforeMs, notAfterMs }, deadlineMs: 1000 },
      { kind: 'client', input: { ...same, notBeforeMs, notAfterMs, privateKeyPem: 'certificate secret' } },
    ]);
  }
});

t.test('secrets leave sealed, each for its own field; a renewal keeps the key', async (t) => {
  const { keyring } = forageWith({});
  const { wireguard, certificate } = await maker.make(
    asker,
    owner,
    { localId, network: networkNow(), expiresAtMs: null },
    keyring,
  );
  t.equal(wireguard.publicKey, keys.publicKey);
  t.equal(vault.open(placeOf(owner, 'wireguard'), wireguard.privateKey), keys.privateKey);
  t.equal(vault.open(placeOf(owner, 'preshared'), wireguard.presharedKey), keys.presharedKey);
  t.equal(vault.open(placeOf(owner, 'certificate'), certificate.privateKey), 'peer key');
  const peer = peerNow();
  const renewed = await maker.renew(asker, peer, networkNow(), keyring);
  t.match(renewed, { serial: '0a', privateKey: peer.certificate.privateKey });
});

t.test('a certificate that ends with its peer or its authority is not renewed for nothing', (t) => {
  const endsMs = nowMs + 1000;
  const certificate = { ...peerNow().certificate, notAfterMs: endsMs };
  t.equal(maker.isRenewalDue(peerNow({ certificate }), networkNow()), true);
  t.equal(maker.isRenewalDue(peerNow({ certificate, expiresAtMs: endsMs }), networkNow()), false);
  t.equal(maker.isRenewalDue(peerNow({ certificate }), networkUntil(endsMs)), false);
  t.end();
});
