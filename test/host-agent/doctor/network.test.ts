import t from 'tap';
import {
  judgeLogFiles,
  judgeNetwork,
  judgePublishAddress,
  seeLogFiles,
  seeRules,
  type NetworkFacts,
} from '../../../host-agent/doctor/network.ts';
import { firewallTable } from '../../../host-agent/network/firewall-rules.ts';
import { NftError } from '../../../host-agent/network/nft.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { temporaryFolder } from '../../support/folder.ts';

const network = { Id: 'a'.repeat(64), Name: 'n', Created: '1' };
const good: NetworkFacts = { mode: 'on', network, hasBridge: true, isBridgedFiltered: true, nft: 'rules' };
const cases: readonly [name: string, facts: Partial<NetworkFacts>, expected: string[]][] = [
  ['as it should be', {}, []],
  ['before the first container', { network: undefined, hasBridge: false, nft: 'no rules' }, []],
  [
    'before the first container, without the module',
    { network: undefined, isBridgedFiltered: false },
    ['warn br_netfilter'],
  ],
  ['a bridge that is elsewhere', { hasBridge: false }, ['fail bridge']],
  ['rules that are gone', { nft: 'no rules' }, ['warn firewall']],
  ['no nft', { nft: 'missing' }, ['fail firewall']],
  ['no capability', { nft: 'forbidden' }, ['fail firewall']],
  ['packets past the firewall', { isBridgedFiltered: false }, ['fail br_netfilter']],
  [
    'no firewall',
    { mode: 'off', hasBridge: false, isBridgedFiltered: false, nft: 'missing' },
    ['warn bridge', 'warn firewall'],
  ],
];
for (const [name, facts, expected] of cases) {
  t.test(name, (t) => {
    const troubles = judgeNetwork({ ...good, ...facts }).filter(({ verdict }) => verdict !== 'ok');
    t.same(
      troubles.map(({ check, verdict }) => `${verdict} ${check}`),
      expected,
    );
    t.end();
  });
}

t.test('findings from nft, without changing a rule', async (t) => {
  const owner = { cluster: 'c', host: 'h1' as HostKey };
  const asked: (readonly string[])[] = [];
  const listing = (text: string) => (args: readonly string[]) => {
    asked.push(args);
    return Promise.resolve(text);
  };
  t.equal(await seeRules(listing(`table ip nat\ntable inet ${firewallTable(owner)}\n`), owner), 'rules');
  t.equal(await seeRules(listing(`table inet ${firewallTable(owner)}2\n`), owner), 'no rules');
  t.equal(await seeRules(listing(''), undefined), 'no rules');
  t.equal(await seeRules(() => Promise.reject(new NftError('forbidden', 'x')), owner), 'forbidden');
  t.ok(asked.every(([verb]) => verb === 'list'));
});

t.test('the address of published ports', (t) => {
  const verdict = (address: string) => judgePublishAddress(address, ['127.0.0.1', '192.0.2.7']).verdict;
  t.same(['192.0.2.7', '0.0.0.0', '127.0.0.1', '192.0.2.8'].map(verdict), ['ok', 'ok', 'warn', 'fail']);
  t.end();
});

t.test('log files', async (t) => {
  t.equal(await seeLogFiles(temporaryFolder(t)), 'absent');
  t.same(
    (['readable', 'off', 'forbidden', 'absent'] as const).map((files) => judgeLogFiles(files).verdict),
    ['ok', 'ok', 'warn', 'warn'],
  );
});
