/** Cuts the wire between hosts of one machine, whose ends of the mesh are ports of loopback. */
import type { Test } from 'tap';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { run } from '../../../dev/process/run.ts';

const deadlineMs = 10_000;

export interface Cut {
  mend(): Promise<void>;
}

/** Drops all datagrams to these ports, until it is mended or the test ends. */
export async function cutWire(t: Test, ports: readonly number[]): Promise<Cut> {
  const nft = await toolHere('nft');
  const table = `inet longshore_cut_${ports[0]}`;
  const change = async (command: string): Promise<void> => {
    const ran = await run(nft.path, [command], { deadlineMs, env: { ...process.env, ...nft.env } });
    if (ran.code !== 0) throw new Error(`nft ${command}: ${ran.stderr}`);
  };
  const hook = '{ type filter hook output priority 0; }';
  let isCut = true;
  const mend = async (): Promise<void> => {
    if (isCut) await change(`delete table ${table}`);
    isCut = false;
  };
  t.teardown(mend);
  const dropped = `add rule ${table} out udp dport { ${ports.join(', ')} } drop`;
  await change(`add table ${table}; add chain ${table} out ${hook}; ${dropped}`);
  return { mend };
}
