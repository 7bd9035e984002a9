import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { openSpool } from '../../../host-agent/logs/spool.ts';
import { createLog } from '../../../lib/log.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { tenant } from '../support/decisions.ts';

const log = createLog('test', 'silent');

t.test('a full spool drops and counts its oldest lines, and sends in order', async (t) => {
  const dir = temporaryFolder(t);
  let dropped = 0;
  const open = () =>
    openSpool(
      dir,
      () => 1,
      (lines) => (dropped += lines),
      log,
      1000,
    );
  const block = (text: string) =>
    JSON.stringify({ v: 1, lines: [{ ts: '2026-01-02T03:04:05Z', stream: 'stdout', line: text, seq: 1 }] });
  const source = (name: string) => ({ tenant, id: name as ContainerId });
  const one = '0190a000-0000-7000-8000-00000000000';
  const spool = await open();
  for (const digit of ['1', '2', '3']) await spool.add(source(one + digit), [block(digit.repeat(250))], 1);
  t.equal(dropped, 1);
  writeFileSync(join(dir, 'spool', '0-0.ndjson'), 'garbage');

  const again = await open();
  const sent: string[] = [];
  const ending = new AbortController();
  const running = again.run((each) => {
    sent.push(each.id);
    return Promise.resolve(undefined);
  }, ending.signal);
  await again.settled(source(`${one}3`), ending.signal);
  t.same(sent, [`${one}2`, `${one}3`]);
  t.same(readdirSync(join(dir, 'spool')), []);
  ending.abort();
  await running;
});

t.test('a tenant that fills the spool loses its own files and delays no other', async (t) => {
  let dropped = 0;
  const spool = await openSpool(
    temporaryFolder(t),
    () => 1,
    (lines) => (dropped += lines),
    log,
    4000,
  );
  const of = (name: string, number: number) => ({
    tenant: name as TenantId,
    id: `0190a000-0000-7000-8000-00000000000${number}` as ContainerId,
  });
  const block = JSON.stringify({
    v: 1,
    lines: [{ ts: '2026-01-02T03:04:05Z', stream: 'stdout', line: 'x'.repeat(500), seq: 1 }],
  });
  await spool.add(of('quiet', 9), [block], 1);
  for (let number = 0; number < 9; number++) await spool.add(of('noisy', number), [block], 10);
  t.equal(dropped, 40, 'the oldest four of the noisy tenant');

  const ending = new AbortController();
  const sent: string[] = [];
  // The control plane accepts nothing from the noisy tenant.
  const running = spool.run(async (source, _block, _lines, signal) => {
    if (source.tenant !== 'noisy') sent.push(source.tenant);
    else if (!signal.aborted) await once(signal, 'abort');
    return undefined;
  }, ending.signal);
  await spool.settled(of('quiet', 9), ending.signal);
  t.same(sent, ['quiet']);
  ending.abort();
  await running;
});
