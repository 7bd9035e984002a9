/** Actions of the agent on its rules, given the answers of nft and of a probe in a container. */
import { Registry } from 'prom-client';
import t from 'tap';
import type { Network } from '../../../host-agent/docker/answers.ts';
import type { Engine } from '../../../host-agent/docker/engine.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { createFirewall, type FirewallParts, firewallProbeMs } from '../../../host-agent/network/firewall.ts';
import type { Probed } from '../../../host-agent/network/firewall-probe.ts';
import { createMetrics } from '../../../host-agent/metrics.ts';
import { NftError, type NftFault } from '../../../host-agent/network/nft.ts';
import { createLog } from '../../../lib/log.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { until } from '../../support/until.ts';
import { networkName } from '../../../host-agent/docker/ownership.ts';

const owner = { cluster: 'c', host: 'h1' as HostKey };
const network = (id: string): Network => ({ Id: id.repeat(12), Name: networkName(owner), Created: '1' });

/** A fake nft: keeps one table, or refuses everything. */
function startKernel() {
  const machine = {
    table: undefined as string | undefined,
    refuses: undefined as NftFault | undefined,
    sets: 0,
    networks: [network('a')],
    isFiltered: true,
    hasBridge: true,
    probed: { kind: 'held' } as Probed,
    probes: 0,
    steadyMs: 0,
  };
  const nft: FirewallParts['nft'] = ([verb], input) => {
    if (machine.refuses !== undefined) return Promise.reject(new NftError(machine.refuses, 'refused'));
    if (verb === '-f') {
      machine.sets += 1;
      machine.table = input;
    } else if (machine.table === undefined)
      return Promise.reject(new NftError('failed', 'Error: No such file or directory'));
    return Promise.resolve(machine.table ?? '');
  };
  return { machine, nft };
}

function startFirewall(mode: 'on' | 'required' | 'off' = 'on') {
  const { machine, nft } = startKernel();
  const log = createLog('test', 'silent');
  const faults = createFaults(log);
  const engine = { networks: () => Promise.resolve([...machine.networks]) } as unknown as Engine;
  const firewall = createFirewall({
    settings: { CONTAINER_FIREWALL: mode, CONTAINER_EGRESS_ALLOW: ['10.1.2.3:5432/tcp'], CONTAINER_EGRESS_DENY: [] },
    engine,
    owner,
    faults,
    metrics: createMetrics(new Registry()),
    steadyMs: () => machine.steadyMs,
    log,
    kernel: { hasInterface: () => machine.hasBridge, isBridgedFiltered: () => machine.isFiltered },
    nft,
    probe: () => {
      machine.probes += 1;
      return Promise.resolve(machine.probed);
    },
  });
  const fault = () => faults.list().find(({ kind }) => kind === 'container_firewall')?.message;
  return { machine, firewall, fault };
}

t.test('the agent sets rules once, and again when they are gone or changed', async (t) => {
  const { machine, firewall } = startFirewall();
  await firewall.look();
  t.match(machine.table, /10\.1\.2\.3\/32 tcp dport 5432 accept/);
  t.match(machine.table, `"br-${'a'.repeat(12)}"`);
  t.equal(firewall.state(), 'unchecked');
  await firewall.look();
  await firewall.cover(network('a'));
  t.equal(machine.sets, 1, 'rules in place stay');
  machine.table = undefined;
  await firewall.look();
  t.equal(machine.sets, 2, 'gone');
  machine.table = String(machine.table).replace('drop', 'accept');
  await firewall.look();
  t.equal(machine.sets, 3, 'changed');
  await firewall.cover(network('b'));
  t.match(machine.table, `"br-${'b'.repeat(12)}"`, 'another network gets rules before its first container');
});

t.test('a firewall that cannot be enforced is a fault until it can', async (t) => {
  for (const [name, harm, message] of [
    ['no nft', { refuses: 'missing' }, /install the package nftables/],
    ['no right', { refuses: 'forbidden' }, /CAP_NET_ADMIN/],
    ['nft refuses the rules', { refuses: 'failed' }, /nft refuses the rules/],
    ['an engine elsewhere', { hasBridge: false }, /not on this machine/],
    ['bridged packets bypass the rules', { isFiltered: false }, /br_netfilter/],
  ] as const) {
    await t.test(name, async (t) => {
      for (const mode of ['on', 'required'] as const) {
        const { machine, firewall, fault } = startFirewall(mode);
        const well = { refuses: machine.refuses, hasBridge: true, isFiltered: true };
        Object.assign(machine, harm);
        await firewall.look();
        t.equal(firewall.state(), 'open');
        t.match(fault(), message);
        t.equal(firewall.refusal() === undefined, mode === 'on', `${mode}: whether containers start`);
        Object.assign(machine, well);
        await firewall.look();
        t.equal(firewall.state(), 'unchecked');
        t.equal(fault(), undefined);
        t.equal(firewall.refusal(), undefined);
      }
    });
  }
});

t.test('the agent checks its right to set rules before the first network', async (t) => {
  const { machine, firewall, fault } = startFirewall('required');
  t.match(firewall.refusal(), /firewall/, 'not known yet');
  machine.networks = [];
  machine.table = '';
  await firewall.look();
  t.equal(firewall.state(), 'waiting');
  machine.refuses = 'forbidden';
  await firewall.look();
  t.match(fault(), /CAP_NET_ADMIN/);
});

t.test('probes from inside a container', async (t) => {
  const { machine, firewall, fault } = startFirewall();
  const ending = new AbortController();
  const running = firewall.run(5, ending.signal);
  const state = (expected: string) =>
    until(
      () => `${expected}: ${firewall.state()}`,
      () => firewall.state() === expected || undefined,
    );
  await state('enforced');
  const { probes } = machine;
  t.equal(probes, 1);
  machine.probed = { kind: 'reached', what: 'this host' };
  machine.steadyMs += firewallProbeMs;
  await state('open');
  t.match(fault(), /containers reach this host although/);
  machine.probed = { kind: 'held' };
  await state('enforced');
  t.equal(fault(), undefined, 'the agent tries again while the firewall is open');
  machine.probed = { kind: 'failed', why: 'no container' };
  machine.table = undefined;
  const after = machine.probes;
  await until('another look after the rules were set again', () => machine.probes > after || undefined);
  await state('unchecked');
  t.equal(fault(), undefined, 'a probe that showed nothing is no fault');
  ending.abort();
  await running;
});

t.test('off: no rules and no probes', async (t) => {
  const { machine, firewall, fault } = startFirewall('off');
  await firewall.look();
  await firewall.cover(network('a'));
  await firewall.run(5, new AbortController().signal);
  t.match(
    [firewall.state(), machine.sets, machine.probes, fault(), firewall.refusal()],
    ['off', 0, 0, undefined, undefined],
  );
});
