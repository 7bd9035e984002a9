/**
 * A host floods the shared stream LOGS below its own prefix: under the name of another host's
 * tenant, of invented tenants or of none, with subjects that are wildcards or forge the server's
 * list. The lines of other hosts must stay.
 */
import { readFileSync } from 'node:fs';
import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import { encodeUser } from '@nats-io/jwt';
import { createUser, fromSeed } from '@nats-io/nkeys';
import { connect, jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import { createBudgets } from '../../../actors/retention/budgets.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../../actors/support.ts';
import { startCluster, type Ground } from '../../integration/actors/support.ts';

const streamBytes = 1024 * 1024;
const rounds = 8;
/** The bytes of a round: less than the room above the share at which the budgets act. */
const roundBytes = streamBytes / 5;

/**
 * Connects with credentials that may publish every subject below the host's prefix, which is more
 * than the control plane permits.
 */
async function connectHost(t: Test, { nats }: Ground, hostKey: string): Promise<NatsConnection> {
  const user = createUser();
  const signer = fromSeed(Buffer.from(readFileSync(nats.hostsSigningSeedFile, 'utf8').trim()));
  const allowed = {
    pub: { allow: [`host.${hostKey}.>`], deny: [] },
    sub: { allow: [`_INBOX_${hostKey}.>`], deny: [] },
  };
  const jwt = await encodeUser(hostKey, user, nats.hostsAccount, allowed, { signer });
  const nc = await connect({
    servers: nats.url,
    authenticator: jwtAuthenticator(jwt, user.getSeed()),
    inboxPrefix: `_INBOX_${hostKey}`,
  });
  t.teardown(() => nc.close());
  return nc;
}

const countOf = async (manager: JetStreamManager, filter: string): Promise<number> => {
  const { state } = await manager.streams.info('LOGS', { subjects_filter: filter });
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
};

type Flood = (index: number) => { readonly subject: string; readonly bytes?: number };

const floods: Readonly<Record<string, Flood>> = {
  'in the name of another host’s tenant': () => ({ subject: 'host.h1.log.victim.c1' }),
  'of tenants that there are not': (index) => ({ subject: `host.h1.log.made-up-${index}.c1` }),
  'of containers that there are not': (index) => ({ subject: `host.h1.log.own.c${index}` }),
  'that name nobody': (index) => ({
    subject: ['host.h1.log.short', 'host.h1.log.victim.c1.more', `host.h1.log.no,${index % 9}.c1`][index % 3] ?? '',
  }),
  'with wildcards': (index) => ({
    subject: ['host.h1.log.*.c1', 'host.h1.log.>', 'host.h1.log.victim.>'][index % 3] ?? '',
  }),
  'that forge the list of subjects': () => ({ subject: 'host.h1.log.a":1,"host.h2.log.victim.c1' }),
  'that begin and end small': (index) => ({ subject: 'host.h1.log.victim.c1', bytes: index % 32 === 0 ? 30_000 : 1 }),
};

t.test('a flood of messages', async (t) => {
  const ground = await startCluster(t, 1);
  const manager = await jetstreamManager(ground.nc);
  await manager.streams.update('LOGS', { max_bytes: streamBytes });
  const [hostile, honest] = await Promise.all([connectHost(t, ground, 'h1'), connectHost(t, ground, 'h2')]);
  const failures: unknown[] = [];
  const budgets = createBudgets({
    nc: ground.nc,
    owned: () => [0],
    slices: createSlices(systemClock),
    log: { ...quietLog, warn: (event, fields) => void (event === 'budgets_failed' && failures.push(fields)) },
    onTrimmed: () => undefined,
    random: Math.random,
  });
  t.teardown(() => budgets.stop());

  for (const [what, flood] of Object.entries(floods)) {
    await t.test(what, async (t) => {
      await manager.streams.purge('LOGS');
      let index = 0;
      for (let round = 0; round < rounds; round++) {
        // Two tenants of an honest host write a little each.
        for (const tenant of ['victim', 'other']) await honest.request(`host.h2.log.${tenant}.c2`, `line ${round}`);
        for (let written = 0; written < roundBytes; index++) {
          const { subject, bytes = 2000 } = flood(index);
          hostile.publish(subject, 'x'.repeat(bytes));
          written += bytes + subject.length;
        }
        // The answer comes when everything sent before is stored.
        await hostile.request('host.h1.log.own.c1', `round ${round}`, { timeout: 30_000 });
        await budgets.look();
      }
      t.same(failures, []);
      t.equal(await countOf(manager, 'host.h2.log.victim.c2'), rounds, 'the victim has every line');
      t.equal(await countOf(manager, 'host.h2.log.other.c2'), rounds, 'another tenant has every line');
      const { state } = await manager.streams.info('LOGS');
      t.ok(state.bytes <= streamBytes * limits.budgetFrom, 'the stream is below its share');
      const newest = await manager.direct.getMessage('LOGS', { last_by_subj: 'host.h1.log.own.c1' });
      t.equal(newest?.string(), `round ${rounds - 1}`, 'the host keeps its newest');
    });
  }
});
