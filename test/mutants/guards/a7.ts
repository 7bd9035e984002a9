/** A7: a host can report only about itself. */
import type { Guard } from '../mutant.ts';

export const a7: readonly Guard[] = [
  {
    name: 'report of any key accepted',
    guard: 'Actors accept only the key that is enrolled for a host now (ADR 22)',
    file: 'actors/domain/host/sender.ts',
    changes: [{ in: 'isEnrolled', always: 'host?.publicKey === user' }],
    killedBy: 'test/actors/domain/host.test.ts',
  },
  {
    name: 'report of any host accepted',
    guard: 'A report is accepted only from the host that the record names',
    file: 'actors/domain/container/observe.ts',
    changes: [{ in: 'observe', omit: 'record.placement.host !== host' }],
    killedBy: 'test/actors/domain/container.test.ts',
  },
  {
    name: 'report of a fenced host accepted',
    guard: 'A report of a fenced host changes nothing',
    file: 'actors/endpoints/hosts/report.ts',
    changes: [{ in: 'refusalOf', omit: "if (fleet.condition(host) === 'fenced') return 'unavailable'" }],
    killedBy: 'test/integration/actors/owner.test.ts',
  },
  {
    name: 'any join token accepted',
    guard: 'A host is enrolled by its own token',
    file: 'actors/domain/host/decide.ts',
    changes: [{ in: 'mayEnrol', omit: 'join.tokenHash !== ask.joinTokenHash' }],
    killedBy: 'test/actors/domain/host.test.ts',
  },
  {
    name: 'join token used twice',
    guard: 'A join token enrols one key',
    file: 'actors/domain/host/decide.ts',
    changes: [{ in: 'mayEnrol', always: 'join.spentBy === null || join.spentBy === ask.publicKey' }],
    killedBy: 'test/actors/domain/host.test.ts',
  },
  {
    name: 'credentials renewed for a replaced key',
    guard: 'Credentials go to the key that is enrolled when the hello is committed',
    file: 'actors/domain/host/decide.ts',
    changes: [{ in: 'hello', omit: '!isEnrolled(before, sender)' }],
    killedBy: 'test/actors/domain/host.test.ts',
  },
  {
    name: 'session that no hello gave',
    guard: 'What an agent says of its session ends with its key (docs/security.md, lying-host)',
    file: 'actors/endpoints/hosts/report.ts',
    changes: [{ in: 'refusalOf', never: 'session > highestSession(given, clock.nowMs())' }],
    killedBy: 'test/attacks/hosts/lying-host.test.ts',
  },
  {
    name: 'host may speak for others',
    guard: 'The NATS server holds a host to its own subjects',
    file: 'lib/nats/host-credentials.ts',
    changes: [{ in: 'permissionsOf', replace: '`agent.${host}.${user}.*`', by: "'agent.>'" }],
    killedBy: 'test/integration/dev/nats.test.ts',
  },
  {
    name: 'guessable inbox',
    guard: 'A sync answer counts only in the inbox of its own ask',
    file: 'host-agent/link/sync.ts',
    changes: [{ in: 'token', replace: "randomBytes(16).toString('hex')", by: "'0'.repeat(32)" }],
    killedBy: 'test/integration/host-agent/desired/ours.test.ts',
  },
  {
    name: 'log lines of any host accepted',
    guard: 'Log lines count only from the hosts that a container was placed on',
    file: 'gateway/streams/logs.ts',
    changes: [
      {
        in: 'LogReader.newest',
        replace: 'subjects.hostLog(host, tenant, id)',
        by: "subjects.hostLog('*', tenant, id)",
      },
    ],
    killedBy: 'test/integration/gateway/streams.test.ts',
  },
  {
    name: 'traffic of VPN peers from every host',
    guard: 'A host speaks only of the VPN peers that it serves (ADR 52)',
    file: 'actors/domain/host/usage.ts',
    changes: [{ in: 'judgePeer', always: 'fleet.server(record.network)?.host === host' }],
    killedBy: 'test/actors/domain/host/usage.test.ts',
  },
  {
    name: 'keys of a VPN network for every host',
    guard: 'Only the host that serves a VPN network gets its private key (ADR 52)',
    file: 'actors/domain/secret/unseal.ts',
    changes: [{ in: 'unsealNetwork', never: 'record?.host !== host' }],
    killedBy: 'test/actors/domain/network.test.ts',
  },
  {
    name: 'keys of VPN peers for every host',
    guard: 'Only the host that serves the network of a peer gets its preshared key (ADR 52)',
    file: 'actors/domain/secret/unseal.ts',
    changes: [{ in: 'unsealPeer', never: 'context.fleet.server(record.network)?.host !== host' }],
    killedBy: 'test/actors/domain/network.test.ts',
  },
  {
    name: 'secrets for a host without the container',
    guard: 'A host gets only what its own containers need (ADR 37)',
    file: 'actors/domain/secret/unseal.ts',
    changes: [{ in: 'unseal', replace: 'record === undefined || !isOn(record, host)', by: 'record === undefined' }],
    killedBy: 'test/actors/domain/secret/unseal.test.ts',
  },
];
