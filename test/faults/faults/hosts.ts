/**
 * Faults of a single host: it is away until its credentials have expired; or it is cut off and may
 * run nothing, while an update that replaced another is under way.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { decodeIdentity, hasExpired, identityPath, userOf } from '../../../host-agent/link/identity/identity.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { mintHostUserJwt } from '../../support/host-user.ts';
import { createPlainClient, type Call, type PlainClient } from '../load/plain-client.ts';
import { compute, containerIn } from '../load/requests.ts';
import { goodTags, slowTag, updatesTenant } from '../load/tenants.ts';
import type { Controlled } from '../world/supervise.ts';
import { bothWays } from '../world/wire.ts';
import type { World } from '../world/world.ts';
import { between, type FaultKind } from './fault.ts';

const endedSinceMs = 60_000;
const deadlineMs = 60_000;
const lookMs = 50;

const agentOf = ({ processes }: World): Controlled => {
  const agent = processes.get('h1');
  if (agent === undefined) throw new Error('h1 was not started');
  return agent;
};

async function isSoon(holds: () => boolean): Promise<boolean> {
  for (const endMs = performance.now() + deadlineMs; performance.now() < endMs; await sleep(lookMs)) {
    if (holds()) return true;
  }
  return false;
}

const identityOf = ({ agentFolder }: World) => decodeIdentity(readFileSync(identityPath(agentFolder)));

async function endCredentials(world: World): Promise<void> {
  const { nats, agentFolder } = world;
  const identity = identityOf(world);
  const jwt = await mintHostUserJwt({
    hostKey: identity.host,
    publicKey: userOf(identity.jwt) ?? '',
    hostsAccount: nats.hostsAccount,
    hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
    expiresAtS: Math.floor((Date.now() - endedSinceMs) / 1000),
  });
  writeFileSync(identityPath(agentFolder), JSON.stringify({ ...identity, jwt }));
}

const credentialsEnded: FaultKind = {
  name: 'credentials of the agent ended',
  needsWire: false,
  plan: (random) => {
    const isKilled = random.once(2);
    const holdMs = between(random, 500, 4_000);
    return {
      text: `${isKilled ? 'SIGKILL' : 'SIGTERM'} to h1, which is started again after ${holdMs} ms with credentials that have ended`,
      holdMs,
      inject: async (world) => {
        const agent = agentOf(world);
        await (isKilled ? agent.kill9() : agent.stop());
        await endCredentials(world);
        return {
          heal: async () => {
            await agent.start();
            if (await isSoon(() => !hasExpired(identityOf(world), Date.now()))) return;
            throw new Error(`after ${deadlineMs / 1000} s the agent has no new credentials`);
          },
        };
      },
    };
  },
};

/** Longer than an agent on a busy machine waits for an answer. */
const stopAfterMs = 8_000;
/** Time in which the agent hears of an update. */
const updateHeardMs = 500;

async function restart(world: World, stopOnDisconnect: string): Promise<void> {
  const agent = agentOf(world);
  await agent.stop();
  world.agentSettings['STOP_ON_DISCONNECT'] = stopOnDisconnect;
  await agent.start();
}

/** A container whose version has yet to prove itself, while another one is being pulled. */
async function updateTwice(world: World, client: PlainClient) {
  const insist = async (call: Call) => {
    const outcome = await client.insist(call, AbortSignal.timeout(deadlineMs));
    if (outcome?.kind === 'done') return outcome;
    throw new Error(`${call.method} ${call.path} was not done: ${JSON.stringify(outcome)}`);
  };
  const body = { name: 'twice', registry: 'registry.test', repository: updatesTenant, tag: goodTags[0] };
  const headers = { 'idempotency-key': 'updates-twice' };
  const { id } = containerIn((await insist({ method: 'POST', path: compute, body, headers })).body);
  const change = (tag: string) => insist({ method: 'PATCH', path: `${compute}/${id}`, body: { tag } });
  const runs = (tag: string) =>
    isSoon(() => world.engine.running().some((each) => each.container === id && each.tag === tag));
  await runs(goodTags[0]);
  await change(goodTags[1]);
  await runs(goodTags[1]);
  await change(slowTag);
  return { id, change };
}

const cutOffBetweenUpdates: FaultKind = {
  name: 'agent cut off between updates',
  promise: 'a host that is cut off stops what it runs',
  needsWire: true,
  plan: () => ({
    text: `h1 is cut off while one update of a container replaces another, and stops all after ${stopAfterMs} ms`,
    holdMs: 0,
    inject: async (world) => {
      const { wire } = world;
      if (wire === undefined) throw new Error('there is no wire');
      await restart(world, `${stopAfterMs}ms`);
      const client = await createPlainClient(world, updatesTenant, 0);
      const { id, change } = await updateTwice(world, client);
      await sleep(updateHeardMs);
      await wire.cut(bothWays(['h1'], ['n1', 'n2', 'n3']));
      const isDown = await isSoon(() => world.engine.running().length === 0);
      const left = world.engine.running().map(({ container, tag }) => `${container} (${tag})`);
      return {
        note: `${id} was updated twice`,
        faults: isDown ? [] : [`${deadlineMs / 1000} s after h1 was cut off, it runs ${left.join(', ')}`],
        heal: async () => {
          await wire.mend();
          await restart(world, 'off');
          await change(goodTags[0]);
          client.close();
        },
      };
    },
  }),
};

export const hostFaults: readonly FaultKind[] = [credentialsEnded, cutOffBetweenUpdates];
