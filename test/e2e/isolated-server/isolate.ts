/**
 * Cuts a NATS server off from the other two while it keeps its clients, and tests how one of these
 * clients recovers. Each test runs in its own network namespace.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import type { Test } from 'tap';
import type { NatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { createRandom } from '../../actors/support/random.ts';
import { bothWays, type Place } from '../../faults/world/wire.ts';
import { startWorld, type World } from '../../faults/world/world.ts';
import { testInNamespace } from '../../support/namespace.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

/**
 * A program changes servers after 10 to 15 seconds of silence, an agent after 20 to 30; the rest
 * allows for a slow machine.
 */
export const movedDeadlineMs = 150_000;
const timeoutMs = 600_000;

interface Connections {
  readonly server: { readonly name: string };
  readonly data?: { readonly connections?: readonly { readonly ip: string; readonly name: string }[] };
}

const connectSystem = (nats: NatsCluster): Promise<NatsConnection> =>
  connect({
    servers: [...nats.urls],
    authenticator: credsAuthenticator(readFileSync(nats.sysCredsFile)),
    tls: { caFile: nats.caFile, handshakeFirst: true },
  });

/**
 * An actors process has a second connection, to the system account. This one may be on another
 * server and never changes servers.
 */
const isSystem = ({ name }: { readonly name: string }): boolean => name.endsWith('(system account)');

/** The name of the server that a program is connected to. */
async function serverOf(system: NatsConnection, world: World, place: Place): Promise<'n1' | 'n2' | 'n3'> {
  const address = world.wire!.address(place);
  return eventually(
    `the server of ${place}`,
    async () => {
      const bounds = { strategy: 'count', maxMessages: 3, maxWait: 1_000 } as const;
      for await (const answer of await system.requestMany('$SYS.REQ.SERVER.PING.CONNZ', '', bounds)) {
        const { server, data } = answer.json<Connections>();
        const isHere = data?.connections?.some((connection) => connection.ip === address && !isSystem(connection));
        if (isHere === true) return server.name as 'n1';
      }
      throw new Error(`no server lists a connection of ${place}`);
    },
    () => true,
  );
}

const metricOf = async (world: World, place: Place, name: string): Promise<number> => {
  const text = await (await fetch(`http://${world.wire!.address(place)}:9100/metrics`)).text();
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1];
  if (value === undefined) throw new Error(`no metric ${name}`);
  return Number(value);
};

export interface Isolation {
  readonly baseUrl: string;
  readonly operator: string;
  readonly world: World;
  /** Number of times that a program has changed servers. */
  moves(place: Place): Promise<number>;
  metric(place: Place, name: string): Promise<number>;
}

/** Cuts off the server of a program and calls `check`; afterwards a create must be acknowledged. */
async function isolate(t: Test, place: Place, check: (t: Test, isolation: Isolation) => Promise<void>): Promise<void> {
  const world = await startWorld(t, {
    folder: temporaryFolder(t, 'li-'),
    compiled: join(repositoryRoot, 'dist'),
    actorsCount: 2,
    hasNamespaces: true,
    random: createRandom(1),
  });
  const { baseUrl } = world.gateways[0]!;
  const tenant = await clientOf(baseUrl, await world.token('acme'));
  let created = 0;
  const image = { registry: '127.0.0.1:1', repository: 'x', tag: '1', cpu_limit: '0.01', mem_limit: '8m' };
  const serves = (): Promise<unknown> =>
    eventually(
      'a create is acknowledged',
      () => tenant.create({ name: `c${created++}`, ...image }),
      ({ status }) => status === 201,
      movedDeadlineMs,
    );
  const metric = (of: Place, name: string): Promise<number> => metricOf(world, of, name);
  const moves = (of: Place): Promise<number> => metric(of, 'longshore_nats_failovers_total');

  await serves();
  const system = await connectSystem(world.nats);
  const server = await serverOf(system, world, place);
  await system.close();
  t.equal(await moves(place), 0);
  const others = (['n1', 'n2', 'n3'] as const).filter((name) => name !== server);
  await world.wire!.cut(bothWays([server], others));
  await check(t, { baseUrl, operator: await world.token('ops', 'operator'), world, moves, metric });
  t.ok((await moves(place)) > 0, `${place} has left ${server}`);
  await serves();
  await world.wire!.mend();
}

/** @param file path of the calling test file, which runs again inside the namespace */
export const testIsolation = (
  file: string,
  place: Place,
  check: (t: Test, isolation: Isolation) => Promise<void>,
): Promise<void> =>
  testInNamespace({ name: `the server of ${place} is cut off`, file, tools: ['nft', 'nats-server'], timeoutMs }, (t) =>
    isolate(t, place, check),
  );
