/** Records that gateways keep copies of: when the owner says that a copy is current. */
import t from 'tap';
import { materialOf } from '../../../actors/domain/material.ts';
import { stateOf } from '../support/records.ts';
import { home, networkRecord, peerRecord, read, token } from '../support/vpn.ts';

const bodyOf = (...given: Parameters<typeof materialOf>) =>
  JSON.parse(materialOf(...given).body) as { data: unknown; version: string };

t.test('a copy is current only if it has everything that the record has now', (t) => {
  const record = peerRecord();
  const { data, version } = bodyOf(record, undefined);
  t.same(data, record);
  t.same(bodyOf(record, version), { data: null, version });
  t.same(bodyOf(structuredClone(record), version), { data: null, version }, 'another owner that loaded the same');
  for (const changed of [
    { ...record, generation: record.generation + 1 },
    { ...record, tokens: [] as const, updatedAtMs: record.updatedAtMs + 1 },
    // A restore took changes back, and others took their numbers.
    { ...record, name: 'another' },
  ]) {
    const next = bodyOf(changed, version);
    t.same(next.data, changed);
    t.not(next.version, version);
  }
  t.end();
});

t.test('a copy opens nothing that its token, its tenant or its absence forbids', (t) => {
  const record = peerRecord({ tokens: [token('good')] });
  const network = networkRecord();
  const known = bodyOf(record, undefined).version;
  const state = stateOf(record, network);
  const ask = { type: 'peer.material', tenant: record.tenant, peer: record.id, known } as const;
  t.match(read(state, { ...ask, tokenHash: 'good' }).body, { data: null, version: known });
  t.equal(read(state, { ...ask, tokenHash: 'revoked' }).code, 'unauthenticated');
  const disabled = stateOf({ ...record, enabled: false });
  t.equal(read(disabled, { ...ask, tokenHash: 'good' }).code, 'unauthenticated');
  t.equal(read(stateOf(network), ask).code, 'not_found');

  const knownNetwork = bodyOf(network, undefined).version;
  const askNetwork = { type: 'network.material', network: home, known: knownNetwork } as const;
  t.match(read(state, askNetwork).body, { data: null, version: knownNetwork });
  t.match(read(stateOf({ ...network, updatedAtMs: 7 }), askNetwork).body, { data: { updatedAtMs: 7 } });
  t.equal(read(stateOf(record), askNetwork).code, 'not_found');
  t.end();
});
