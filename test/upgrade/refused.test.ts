/** The rules of docs/upgrades.md for messages: actors refuse those of an incompatible release. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createUser } from '@nats-io/nkeys';
import t from 'tap';
import { startNats } from '../../dev/servers/nats.ts';
import { decodeAnswers, encodeAsks } from '../../schemas/wire/codec.ts';
import { partitionOf, subjects } from '../../schemas/wire/subjects.ts';
import { protocolVersion, protocolFields } from '../../schemas/wire/version.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { eventually } from '../e2e/support/eventually.ts';
import { connectTo, startPrograms } from '../e2e/support/programs.ts';
import { temporaryFolder } from '../support/folder.ts';

const timeout = 30_000;
const tooNew = { protocol: protocolVersion + 2 };

t.test('messages of another release', { timeout: 120_000 }, async (t) => {
  const folder = temporaryFolder(t, 'longshore-refused-');
  const nats = await startNats({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const access = { ...nats, urls: [nats.url] };
  await startPrograms(t, folder, access, { actors: {}, gateway: {} }, { actors: 1, gateways: 0 });
  const nc = await connectTo(access);
  t.teardown(() => nc.close());
  const tenant = 'acme';
  // 16 is the default of LONGSHORE_PARTITIONS.
  const partition = subjects.partition(partitionOf(tenant, 16));
  const ask = JSON.stringify({ type: 'tenant.get', tenant, rid: 'r', budgetMs: timeout });
  const sender = { host: 'h1' as HostKey, user: createUser().getPublicKey() };
  const say = async (subject: string, message: object): Promise<unknown> =>
    (await nc.request(subject, JSON.stringify(message), { timeout })).json();
  const hello = { v: 1, agent_version: '9', capacity: { cpu_millis: 1, mem_bytes: 1, containers: 1 } };
  const report = { v: 1, partition: 0, session: 1, items: [] };

  await t.test('actors refuse a message that is two releases away, with a reason', async (t) => {
    const batch = encodeAsks([ask, ask]).replace(/"protocol":\d+/, `"protocol":${tooNew.protocol}`);
    const answers = decodeAnswers((await nc.request(partition, batch, { timeout })).string());
    t.same(
      answers.map(({ code }) => code),
      ['unavailable', 'unavailable'],
      'every ask of the batch is refused',
    );
    t.match(await say(subjects.hostHello(sender), { ...hello, ...tooNew }), {
      ...protocolFields,
      ok: false,
      error: 'invalid',
      message: /protocol 6; .* upgrade one release at a time/,
    });
    // Not `invalid`: an agent drops a report that is refused as invalid.
    t.match(await say(subjects.hostReport(sender), { ...report, ...tooNew }), { ok: false, error: 'unavailable' });
    await eventually(
      'a line in the log',
      async () => Promise.resolve(readFileSync(join(folder, 'actors.log'), 'utf8')),
      (text) => text.includes('protocol_refused') && text.includes('docs/upgrades.md'),
    );
  });

  await t.test('actors still answer messages of this release', async (t) => {
    const answer = (await nc.request(partition, encodeAsks([ask]), { timeout })).string();
    t.match(
      answer,
      new RegExp(`^${protocolVersion} [\\w-]+\\n`),
      'the answer begins with its version, and who answers',
    );
    t.match(decodeAnswers(answer), [{ index: 0, code: 'ok' }]);
  });

  await t.test('actors refuse a message without a version, as release 0.1.0 sent it', async (t) => {
    const answer = decodeAnswers((await nc.request(partition, ask, { timeout })).string());
    t.match(answer, [{ code: 'unavailable' }]);
    t.match(await say(subjects.hostHello(sender), hello), {
      ok: false,
      error: 'invalid',
      message: /protocol unknown; .* upgrade one release at a time/,
    });
  });
});
