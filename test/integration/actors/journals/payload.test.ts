/**
 * A NATS server that refuses messages of the size of a journal's entry: an actors process neither
 * starts on it nor stays on it.
 */
import t from 'tap';
import { limits } from '../../../../schemas/limits.ts';
import { alertsOn } from '../../../support/prometheus/promtool.ts';
import { nothingLost, startGround, untilReady, Work, type Actors } from './support.ts';

/** Less than the largest entry, and enough for a small one. */
const smallBytes = limits.journalEntryBytes / 4;

t.test('a NATS server whose max_payload is too small', { timeout: 600_000 }, async (t) => {
  let lines: readonly string[] = [];
  const options = { servers: 1, partitions: 2, actors: 1, natsLines: () => lines } as const;
  const { nats, actors, clientOn } = await startGround(t, options);
  if (!('restart' in nats)) throw new Error('one server was asked for');
  const [process] = actors as [Actors];
  const works = await Promise.all([0, 1].map(async (partition) => new Work(await clientOn(partition))));
  for (const work of works) t.equal(await work.create(), 201);

  lines = [`max_payload: ${smallBytes}`];
  await nats.restart();
  t.match(await process.program.server().exited, { kind: 'code', code: 1 });
  const text = `the NATS server accepts messages of up to ${smallBytes} bytes; set max_payload to ${limits.natsPayloadBytes}`;
  t.match(JSON.stringify(process.logged('payload_too_small')), text);
  for (const work of works) t.equal(await work.create(), 503);
  for (const work of works) t.equal((await work.client.list()).status, 503);
  await t.rejects(process.program.start(), /start_failed/, 'it does not start there');
  t.match(JSON.stringify(process.logged('start_failed')), text);
  t.same(await alertsOn('up 1\n', 'up 1\n'), []);
  t.same(await alertsOn('up 1\n', 'up 0\n'), ['LongshoreProgramDown']);

  lines = [];
  await nats.restart();
  await process.program.start();
  await untilReady([process]);
  for (const work of works) t.equal(await work.create(), 201);
  for (const work of works) t.same(await work.differences(), nothingLost);
});
