import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { sleep } from '../../lib/time/backoff.ts';
import { createLog, createTimestamp } from '../../lib/log.ts';

interface Line {
  readonly event: string;
  readonly number?: number;
  readonly time: string;
}

const linesOf = (file: string): Line[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);

function openLog(t: Test) {
  const file = join(t.testdir(), 'log');
  const fd = openSync(file, 'a');
  t.teardown(() => closeSync(fd));
  return { file, log: createLog('test', 'info', fd) };
}

t.test('lines wait for a warning, and go out in their order, each once', (t) => {
  const { file, log } = openLog(t);

  log.info('quiet', { number: 0 });
  t.same(linesOf(file), [], 'one quiet line waits');
  // More than is collected for one write.
  for (let number = 1; number < 1000; number++) log.info('quiet', { number, text: 'ä'.repeat(number % 100) });
  const early = linesOf(file).length;
  t.ok(early > 0 && early < 1000, 'a block of them does not');
  log.warn('loud');

  const lines = linesOf(file);
  t.equal(lines.pop()?.event, 'loud');
  t.same(
    lines.map(({ number }) => number),
    Array.from({ length: 1000 }, (_, number) => number),
  );
  t.end();
});

t.test('a line has the time at which it was written', async (t) => {
  const { file, log } = openLog(t);

  const times: string[] = [];
  for (let round = 0; round < 3; round++) {
    const beforeMs = Date.now();
    log.warn('loud');
    const time = linesOf(file).at(-1)?.time ?? '';
    t.ok(Date.parse(time) >= beforeMs && Date.parse(time) <= Date.now());
    times.push(time);
    await sleep(5);
  }
  t.equal(new Set(times).size, 3);
});

t.test('a time has its second and its milliseconds, also after the clock steps back', (t) => {
  const times = [0, 7, 999, 1000, 61_042, 999];
  const stamp = createTimestamp(() => times.shift() ?? Number.NaN);
  for (const nowMs of [...times]) t.equal(stamp(), `,"time":"${new Date(nowMs).toISOString()}"`);
  t.end();
});

t.test('a quiet line is written as a loud one, whatever its fields', (t) => {
  const { file, log } = openLog(t);
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const bound = { tenant: 'a"b\\c', subject: 'ü\n\u2028', token: undefined, nothing: null };
  const logs = [log, log.child(bound), log.child(bound).child({ deep: { list: [1, 'x'] } }), log.child({ circle })];
  const fields = [
    undefined,
    {},
    { requestId: 'r', status: 200, ms: 0.25, streamed: undefined, aborted: true },
    { text: '"\\\u0000\u0007\u007f😀', no: Number.NaN, endless: Infinity, at: new Date(0), call: () => 1 },
    { error: new Error('inner', { cause: new Error('cause') }) },
    { err: new Error('inner') },
    { circle },
    { large: 1n },
  ];
  for (const each of logs) {
    for (const given of fields) {
      each.info('said', given);
      each.warn('said', given);
    }
  }

  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  t.equal(lines.length, 2 * logs.length * fields.length);
  const withoutStamp = (line: string) => line.replace(/^\{"level":"[a-z]+","time":"[^"]+"/, '');
  for (let at = 0; at < lines.length; at += 2) {
    const [quiet = '', loud = ''] = lines.slice(at, at + 2);
    t.match(quiet, /^\{"level":"info","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","program":"test","pid":\d+[,}]/);
    t.equal(withoutStamp(quiet), withoutStamp(loud));
  }
  t.end();
});

t.test('a line below the level of the log is not written', (t) => {
  const { file, log } = openLog(t);
  log.debug('dropped', { number: 1 });
  log.child({ number: 2 }).debug('dropped');
  log.warn('loud');
  t.same(
    linesOf(file).map(({ event }) => event),
    ['loud'],
  );
  t.end();
});
