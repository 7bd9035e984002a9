/** A1: the gateway holds no state; any copy serves any request. */
import type { Guard } from '../mutant.ts';

export const a1: readonly Guard[] = [
  {
    name: 'file of an earlier generation',
    guard: 'A kept file of a peer never outlives a change that it shows (ADR 7)',
    file: 'gateway/vpn/service/artifacts.ts',
    changes: [{ in: 'keyOf', replace: 'peer.generation', by: "''" }],
    killedBy: 'test/gateway/vpn/service/artifacts.test.ts',
  },
  {
    name: 'any copy of a record called current',
    guard: 'An owner calls a gateway’s copy of a peer or a network current only if it is (ADR 7)',
    file: 'actors/domain/material.ts',
    changes: [{ in: 'materialOf', always: 'known === version' }],
    killedBy: 'test/actors/domain/material.test.ts',
  },
  {
    name: 'read shared that began earlier',
    guard: 'A read of log lines or events begins after the request that it serves (ADR 23)',
    file: 'gateway/streams/shared-reads.ts',
    changes: [{ in: 'SharedReads.of', replace: 'line.next ??= line.underWay.then(begin, begin)', by: 'line.underWay' }],
    killedBy: 'test/gateway/streams/shared-reads.test.ts',
  },
];
