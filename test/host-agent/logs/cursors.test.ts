import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadCursors, type Cursors } from '../../../host-agent/logs/cursors.ts';
import type { Cursor } from '../../../host-agent/logs/resume.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { containerId, quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { quietDisk } from '../support/disk.ts';
import { stamp } from '../support/log-lines.ts';

const loaded = (stateDir: string): Promise<Cursors> => loadCursors(stateDir, quietDisk(), quietLog);
const cursor = (seq: number): Cursor => {
  const ts = stamp(seq);
  const place = { ts, nth: 0, isOpen: false };
  const at = { file: '1:2', offset: seq * 100, ts, stdout: place, stderr: { ...place, ts: '' } };
  return { dockerId: 'd', place: { ts, stream: 'stdout', nth: 0 }, seq, at };
};
/** The cursors as a process reads them that starts now. */
const seen = async (stateDir: string, ids: readonly ContainerId[]): Promise<Cursor[]> => {
  const cursors = await loaded(stateDir);
  return ids.map((id) => cursors.of(id, 'd'));
};
const unknown: Cursor = { dockerId: 'd', place: null, seq: 0 };

t.test('a change is a line, and a start reads file and lines', async (t) => {
  const stateDir = temporaryFolder(t);
  const [one, two, three] = [containerId(), containerId(), containerId()];
  const ids = [one, two, three];
  const first = await loaded(stateDir);
  first.set(one, cursor(1));
  first.set(two, cursor(2));
  await first.flush();
  const file = readFileSync(join(stateDir, 'log-cursors.json'), 'utf8');
  t.same(await seen(stateDir, ids), [cursor(1), cursor(2), unknown]);

  const second = await loaded(stateDir);
  second.set(one, cursor(3));
  second.set(three, cursor(4));
  second.forget(two);
  const expected = [cursor(3), unknown, cursor(4)];
  await until('the changes on disk', async () => (await seen(stateDir, ids))[2]?.seq === 4);
  t.same(await seen(stateDir, ids), expected);
  t.equal(readFileSync(join(stateDir, 'log-cursors.json'), 'utf8'), file, 'the file is not written again');

  appendFileSync(join(stateDir, 'log-cursors.log'), '00000000 {"v":1');
  t.same(await seen(stateDir, ids), expected, 'a line that a crash cut off is dropped');
  await second.flush();
  t.equal(readFileSync(join(stateDir, 'log-cursors.log'), 'utf8'), '');
  t.same(await seen(stateDir, ids), expected, 'a stop leaves all of them in the file');
});

t.test('a cursor in another container of the engine keeps its number only', async (t) => {
  const stateDir = temporaryFolder(t);
  const id = containerId();
  const cursors = await loaded(stateDir);
  cursors.set(id, cursor(5));
  t.same(cursors.of(id, 'another'), { dockerId: 'another', place: null, seq: 5 });
  await cursors.flush();
});

t.test('each copy of a container is resumed at its place, with the last number of all', async (t) => {
  const stateDir = temporaryFolder(t);
  const id = containerId();
  const of = (dockerId: string, seq: number): Cursor => ({ ...cursor(seq), dockerId });
  const first = await loaded(stateDir);
  first.set(id, of('old', 3));
  first.set(id, of('new', 8));
  t.same(first.of(id, 'old'), { ...of('old', 3), seq: 8 });
  t.same(first.of(id, 'new'), of('new', 8));
  first.set(id, { ...of('old', 3), seq: 9 });
  await first.flush();

  const second = await loaded(stateDir);
  t.same(second.of(id, 'new'), { ...of('new', 8), seq: 9 }, 'also after a restart');
  t.same(second.of(id, 'third'), { dockerId: 'third', place: null, seq: 9 });
  await second.flush();
});

t.test('the place in a copy is kept until the engine has it no more', async (t) => {
  const stateDir = temporaryFolder(t);
  const id = containerId();
  const of = (dockerId: string, seq: number): Cursor => ({ ...cursor(seq), dockerId });
  const first = await loaded(stateDir);
  first.set(id, of('old', 1));
  // Of an update that another one replaces before its end, and so on.
  for (let seq = 2; seq < 30; seq++) {
    first.set(id, of(`new ${seq}`, seq));
    first.keep(id, ['old', `new ${seq}`]);
  }
  t.same(first.of(id, 'old'), { ...of('old', 1), seq: 29 });
  t.equal(first.of(id, 'new 28').place, null, 'of a copy that is gone');
  await first.flush();

  const second = await loaded(stateDir);
  t.same(second.of(id, 'old'), { ...of('old', 1), seq: 29 }, 'also after a restart');
  second.keep(id, []);
  t.same(second.of(id, 'old'), { dockerId: 'old', place: null, seq: 29 }, 'the number stays');
  await second.flush();
  const third = await loaded(stateDir);
  t.same(third.of(id, 'old'), { dockerId: 'old', place: null, seq: 29 });
});
