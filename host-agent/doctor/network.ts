/** The network of containers: bridge, firewall, where ports are published; and their log files. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Network } from '../docker/answers.ts';
import type { Owner } from '../docker/ownership.ts';
import { bridgeOf } from '../network/firewall.ts';
import { firewallTable } from '../network/firewall-rules.ts';
import { NftError, type Nft, type NftFault } from '../network/nft.ts';
import type { AgentSettings } from '../settings.ts';
import { fail, ok, warn, type Finding } from './finding.ts';

export interface NetworkFacts {
  readonly mode: AgentSettings['CONTAINER_FIREWALL'];
  /** `undefined` if the engine has none yet; the agent makes it. */
  readonly network: Network | undefined;
  readonly hasBridge: boolean;
  readonly isBridgedFiltered: boolean;
  readonly nft: NftFault | 'no rules' | 'rules';
}

/** Lists tables, and changes none. Never rejects. */
export async function seeRules(nft: Nft, owner: Owner | undefined): Promise<NetworkFacts['nft']> {
  try {
    const listed = await nft(['list', 'tables']);
    const isSet =
      owner !== undefined && listed.split('\n').some((line) => line.trim().endsWith(` ${firewallTable(owner)}`));
    return isSet ? 'rules' : 'no rules';
  } catch (error) {
    return error instanceof NftError ? error.fault : 'failed';
  }
}

const nftWords: Readonly<Record<NftFault, readonly [says: string, remedy: string]>> = {
  missing: ['there is no program nft', 'install the package nftables'],
  forbidden: [
    'this process may not set the firewall',
    'give the agent CAP_NET_ADMIN (AmbientCapabilities= in its unit), and run the doctor with it',
  ],
  failed: ['nft does not work', 'run: nft list tables'],
};

/** Pure. */
export function judgeNetwork({ mode, network, hasBridge, isBridgedFiltered, nft }: NetworkFacts): Finding[] {
  const findings: Finding[] = [];
  if (network === undefined) findings.push(ok('bridge', 'not made yet: the agent makes it with the first container'));
  else if (hasBridge) findings.push(ok('bridge', bridgeOf(network)));
  else {
    findings.push(
      (mode === 'off' ? warn : fail)(
        'bridge',
        `the engine’s bridge ${bridgeOf(network)} is not in this network namespace`,
        'run the agent on the engine’s machine and in its network namespace, or set CONTAINER_FIREWALL=off',
      ),
    );
  }
  if (mode === 'off') {
    findings.push(
      warn('firewall', 'CONTAINER_FIREWALL=off: the agent sets no rules', 'contain the containers yourself'),
    );
    return findings;
  }
  if (nft === 'rules') findings.push(ok('firewall', 'the rules are in place'));
  else if (nft === 'no rules') {
    findings.push(
      network === undefined
        ? ok('firewall', 'nft works; the agent sets the rules with the first container')
        : warn('firewall', 'nft works, but the rules are not in place', 'start the agent, which sets them'),
    );
  } else
    findings.push(
      fail('firewall', `containers reach this host and its network: ${nftWords[nft][0]}`, nftWords[nft][1]),
    );
  if (isBridgedFiltered) findings.push(ok('br_netfilter', 'packets between containers go through the firewall'));
  else {
    // Newer engines load the module with their first bridge.
    const bad = network === undefined ? warn : fail;
    findings.push(
      bad(
        'br_netfilter',
        'containers of different tenants may reach each other: bridged packets go by the firewall',
        'modprobe br_netfilter, and set net.bridge.bridge-nf-call-iptables (and -ip6tables) to 1, at boot too',
      ),
    );
  }
  return findings;
}

/** Pure. @param own the addresses of this machine */
export function judgePublishAddress(address: string, own: readonly string[]): Finding {
  const check = 'PUBLISH_ADDRESS';
  if (address === '0.0.0.0' || address === '::' || own.includes(address)) {
    const isLocal = address === '127.0.0.1' || address === '::1';
    return isLocal
      ? warn(check, `${address}: only this machine reaches published ports`, 'set the address that clients reach')
      : ok(check, address);
  }
  return fail(
    check,
    `${address} is no address of this machine: no published port can start`,
    `set one of ${own.join(', ')}`,
  );
}

export type LogFiles = 'readable' | 'forbidden' | 'absent';

/** Checks whether this process may read the folder with the engine's log files. */
export async function seeLogFiles(rootDir: string): Promise<LogFiles> {
  try {
    await readdir(join(rootDir, 'containers'));
    return 'readable';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EACCES' || code === 'EPERM' ? 'forbidden' : 'absent';
  }
}

/** Pure. */
export function judgeLogFiles(files: LogFiles | 'off'): Finding {
  const check = 'log files';
  switch (files) {
    case 'readable':
      return ok(check, 'the agent reads logs from the engine’s files');
    case 'off':
      return ok(check, 'the agent asks the engine for logs');
    case 'forbidden':
      return warn(
        check,
        'this process may not read the engine’s log files: logs come through the engine, which costs it more',
        'give the agent CAP_DAC_READ_SEARCH (AmbientCapabilities= in its unit), and run the doctor with it',
      );
    case 'absent':
      return warn(
        check,
        'the engine’s log files are not on this machine: logs come through the engine, which costs it more',
        'run the agent on the engine’s machine, or set LOG_SOURCE=engine',
      );
  }
}
