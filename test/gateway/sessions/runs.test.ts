/** A process whose output is an answer, over a tunnel in this process. */
import t from 'tap';
import { Run } from '../../../gateway/sessions/runs.ts';
import { limits } from '../../../schemas/limits.ts';
import { pair, RecordingPort } from '../../lib/tunnel/support.ts';

function stage() {
  let nowMs = 0;
  let isGood = true;
  const { near, far } = pair();
  const host = new RecordingPort();
  far.attach(host);
  const run = new Run({
    tunnel: near,
    clock: { monotonicMs: () => nowMs },
    timeoutMs: 30_000,
    isStillGood: () => isGood,
  });
  const send = (channel: number, text: string): void => far.data(channel, Buffer.from(text));
  const exit = (code: number): void => {
    far.control({ type: 'exit', code });
    far.end({ reason: 'done' });
  };
  const over = run.pass();
  return { run, far, host, over, send, exit, pass: (ms: number) => (nowMs += ms), revoke: () => (isGood = false) };
}

t.test('the answer is what the process wrote, and its exit code', async (t) => {
  const { over, send, exit } = stage();
  send(1, 'one ');
  send(2, 'wrong');
  send(1, 'two');
  exit(3);
  const { answer, bytesOut, exitCode } = await over;
  const data = { exit_code: 3, stdout: 'one two', stderr: 'wrong', truncated: false };
  t.match(answer, { code: 'ok', body: JSON.stringify({ data }) });
  t.match({ bytesOut, exitCode }, { bytesOut: 12, exitCode: 3 });
});

t.test('output beyond the limit is read and left out', async (t) => {
  const { over, far, exit } = stage();
  const piece = new Uint8Array(limits.tunnelMessageBytes).fill(0x78);
  for (let sent = 0; sent <= limits.runOutputBytes; sent += piece.length) {
    t.ok(far.room() >= piece.length, 'the host may go on');
    far.data(1, piece);
  }
  far.data(2, Buffer.from('last'));
  exit(0);
  const { answer } = await over;
  const { data } = JSON.parse(String(answer.body)) as { data: { stdout: string; stderr: string; truncated: boolean } };
  t.equal(data.stdout.length, limits.runOutputBytes);
  t.match(data, { stderr: '', truncated: true });
});

t.test('an end that is not that of the process', async (t) => {
  const rows: [what: string, end: (of: ReturnType<typeof stage>) => void, answer: object, hostHears: string][] = [
    ['late', ({ pass }) => pass(30_000), { code: 'timeout', body: /did not end in time/ }, 'left'],
    ['revoked', ({ revoke }) => revoke(), { code: 'unauthenticated' }, 'unauthenticated'],
    ['left', ({ run }) => run.leave(), { code: 'timeout' }, 'left'],
    ['lost', ({ far }) => far.end({ reason: 'stopping' }), { code: 'timeout', body: /not known/ }, 'stopping'],
  ];
  for (const [what, end, answer, heard] of rows) {
    const staged = stage();
    staged.send(1, 'x');
    end(staged);
    t.match((await staged.over).answer, answer, what);
    t.match(staged.host.ends, [{ reason: heard }], what);
  }
});
