/** Exec and forward in real containers, through all of Longshore (ADR 39). */
import { randomBytes, createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import type { Container } from '../../../schemas/api/container.ts';
import { limits } from '../../../schemas/limits.ts';
import { open, refused, type OpenSession } from '../../integration/sessions/client.ts';
import type { Client } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { startRig, type Rig } from '../support/rig.ts';

t.setTimeout(600_000);
const compute = '/api/v2/compute';
const small = { cpu_limit: '0.5', mem_limit: '64m' };
const MiB = 1024 * 1024;

/** The processes of this machine whose command line has this text. */
const processesWith = (text: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

const filesOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;

/** The largest that a process was while `work` ran. */
async function whileWatching<T>(
  pids: readonly number[],
  work: () => Promise<T>,
): Promise<{ value: T; grown: number[] }> {
  const before = pids.map(residentBytes);
  const most = [...before];
  const timer = setInterval(
    () => pids.forEach((pid, at) => (most[at] = Math.max(most[at] ?? 0, residentBytes(pid)))),
    100,
  );
  try {
    const value = await work();
    return { value, grown: most.map((bytes, at) => bytes - (before[at] ?? 0)) };
  } finally {
    clearInterval(timer);
  }
}

interface World {
  readonly rig: Rig;
  readonly acme: Client;
  readonly container: Container;
  exec(command: readonly string[], more?: Record<string, string>): Promise<OpenSession>;
  execUrl(command: readonly string[], more?: Record<string, string>): string;
  forward(port: number): Promise<OpenSession>;
  /** Open sessions, as the metrics of gateway and agent say. */
  open(): Promise<number>;
}

async function world(t: Test): Promise<World> {
  const rig = await startRig(t, { gateway: { HTTP_ENGINE: 'uws' } });
  const acme = await rig.client('acme');
  const [container] = await acme.createRunning([{ name: 'web', ...rig.image, ...small, env: { FROM: 'container' } }]);
  if (container === undefined) throw new Error('no container');
  const { token } = acme;
  const base = `${rig.baseUrl}${compute}/${container.id}`;
  const execUrl = (command: readonly string[], more: Record<string, string> = {}): string => {
    const query = new URLSearchParams(more);
    for (const part of command) query.append('command', part);
    return `${base}/exec?${query}`;
  };
  const gauge = async (url: string, name: string): Promise<number> => {
    const text = await (await fetch(url)).text();
    return Number(new RegExp(`^${name} (\\d+)`, 'm').exec(text)?.[1] ?? Number.NaN);
  };
  return {
    rig,
    acme,
    container,
    execUrl,
    exec: (command, more) => open(execUrl(command, more), { token }),
    forward: (port) => open(`${base}/forward?port=${port}`, { token }),
    open: async () =>
      (await gauge(rig.metricsUrls.gateway, 'longshore_gateway_tunnels')) +
      (await gauge(rig.metricsUrls['host-agent'], 'longshore_agent_tunnels')),
  };
}

t.test('sessions', async (t) => {
  const { rig, acme, container, exec, execUrl, forward, open: openSessions } = await world(t);
  const none = async (): Promise<void> =>
    void (await eventually('no session is open', openSessions, (count) => count === 0));
  const out = (session: OpenSession, channel = 1): string => session.bytes(channel).toString();
  const has = (session: OpenSession, text: string | RegExp, channel = 1) =>
    eventually(
      `it says ${text}`,
      async () => Promise.resolve(out(session, channel)),
      (said) => (typeof text === 'string' ? said.includes(text) : text.test(said)),
    );

  await t.test('a process: its streams, its exit code, and what it is confined to', async (t) => {
    const session = await exec(['sh', '-c', 'echo out; echo err >&2; echo $FROM; pwd; exit 7']);
    t.match(await session.control('exit'), { code: 7 });
    t.match(await session.closed(), { code: 1000, reason: 'done' });
    t.match(out(session), /^out\ncontainer\n/);
    t.equal(out(session, 2), 'err\n');
    t.same(session.controls[0], { type: 'started', ends_process: true });
    const status = [
      'sh',
      '-c',
      'grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status; echo; grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/1/status',
    ];
    const confined = await exec(status);
    await confined.closed();
    const [own, first] = out(confined).split('\n\n');
    t.equal(own?.trim(), first?.trim(), 'no more than the container itself');
    const where = await exec(['sh', '-c', 'pwd; id -u; id -g'], { workdir: '/tmp', user: '65534:65534' });
    await where.closed();
    t.equal(out(where), '/tmp\n65534\n65534\n');
    const missing = await exec(['/no/such/program']);
    t.match(await missing.control('exit'), { code: 127 }, 'as shells say');
    t.match(await missing.closed(), { code: 1000, reason: 'done' });
    t.same([out(missing), out(missing, 2)], ['', 'the container has no such program\n'], 'and not as output');
    for (const [command, more, text] of [
      [['/etc'], {}, /may not run/],
      [['id'], { workdir: '/no/such/folder' }, /folder/],
      [['id'], { user: 'nobody-here' }, /no such user/],
    ] as const) {
      const refused = await exec([...command], more);
      t.match(await refused.control('exit'), { code: 126 }, text.source);
      await refused.closed();
      t.equal(out(refused), '');
      t.match(out(refused, 2), text);
    }
    await none();
  });

  await t.test('a process whose output is the answer', async (t) => {
    const path = `${compute}/${container.id}/runs`;
    const run = (body: object, headers = {}) => acme.call('POST', path, body, headers);
    const command = ['sh', '-c', 'echo out; echo err >&2; echo $FROM; exit 7'];
    const key = { 'idempotency-key': 'run-once' };
    const data = { exit_code: 7, stdout: 'out\ncontainer\n', stderr: 'err\n', truncated: false };
    const ran = await run({ command }, key);
    t.match(ran, { status: 200, body: { data } });
    t.match(await run({ command }, key), { status: 409, body: { reason: 'key_used' } }, 'it does not run again');
    t.match(await run({ command: ['id'] }, key), { status: 422 });
    const twice = await Promise.all([1, 2].map(() => run({ command }, { 'idempotency-key': 'run-twice' })));
    t.same(twice.map(({ status }) => status).sort(), [200, 409], 'once of two at one time');
    t.match(await run({ command: ['/no/such/program'] }), { status: 200, body: { data: { exit_code: 127 } } });
    const much = await run({ command: ['sh', '-c', 'head -c 3000000 /dev/zero | tr "\\0" x'] });
    t.match(much, { status: 200, body: { data: { exit_code: 0, truncated: true } } });
    const mark = randomBytes(6).toString('hex');
    const late = await run({ command: ['sh', '-c', `sleep 600; echo ${mark}`], timeout: 1 });
    t.match(late, { status: 504, body: { error: 'timeout' } });
    await eventually(
      'the process has ended',
      async () => Promise.resolve(processesWith(mark)),
      ({ length }) => length === 0,
    );
    await none();
    t.match(await run({ command }, { 'if-match': '*' }), { status: 412 });
    t.match(await run({ command: [] }), { status: 422 });
    t.match(await (await rig.client('rival')).call('POST', path, { command }), { status: 404 });
    const { body } = await acme.call<{ data: { action: string; detail: object }[] }>('GET', '/api/v2/audit?limit=100');
    const of = (action: string) => body.data.filter((line) => line.action === action);
    t.match(of('container.run.ended').at(-1), { detail: { session: { exit_code: 7, reason: 'done' } } });
    t.ok(of('container.run').length >= of('container.run.ended').length, 'each has a line before it begins');
  });

  await t.test('a terminal: size, input, signals', async (t) => {
    const shell = await exec(['sh'], { tty: 'true', stdin: 'true' });
    shell.say({ type: 'resize', cols: 123, rows: 45 });
    await eventually(
      'the size is there',
      async () => {
        await shell.send(Buffer.from('stty size\n'));
        return out(shell);
      },
      (said) => /45 123/.test(said),
    );
    await shell.send(Buffer.from('trap "echo got-it" USR1; echo re""ady\n'));
    await has(shell, 'ready');
    shell.say({ type: 'signal', signal: 'SIGUSR1' });
    // The shell looks after the next line.
    await eventually(
      'the signal has come',
      async () => {
        await shell.send(Buffer.from('\n'));
        return out(shell);
      },
      (said) => /got-it\r\n/.test(said),
    );
    await shell.send(Buffer.from('sleep 1001\n'));
    await eventually(
      'it sleeps',
      async () => Promise.resolve(processesWith('sleep\x001001').length),
      (count) => count > 0,
    );
    await shell.send(Buffer.from('\x03'));
    await shell.send(Buffer.from('exit 5\n'));
    t.match(await shell.control('exit'), { code: 5 });
    await shell.closed();
    const killed = await exec(['sleep', '1000']);
    await killed.control('started');
    killed.say({ type: 'signal', signal: 'SIGKILL' });
    t.match(await killed.control('exit'), { code: 137 });
    const copied = await exec(['cat'], { stdin: 'true' });
    await copied.send(Buffer.alloc(300_000, 1));
    copied.say({ type: 'end' });
    t.match(await copied.control('exit'), { code: 0 });
    t.equal(copied.count(1), 300_000, 'to the end of the input');
    await none();
  });

  await t.test('100 MB each way, byte for byte, to a reader that rests', async (t) => {
    const pids = [rig.gateway.server().pid, rig.agent.server().pid];
    const sent = randomBytes(100 * MiB);
    const { grown } = await whileWatching(pids, async () => {
      const session = await exec(['cat'], { stdin: 'true' });
      const hash = createHash('sha256');
      let count = 0;
      session.socket.removeAllListeners('message');
      let room: number = limits.tunnelWindowBytes;
      session.socket.on('message', (data: Buffer) => {
        if (data[0] === 1) {
          hash.update(data.subarray(1));
          count += data.length - 1;
        } else if (data[0] === 3)
          room += Number((JSON.parse(data.subarray(1).toString()) as { bytes?: number }).bytes ?? 0);
      });
      let rests = 0;
      for (let at = 0; at < sent.length;) {
        const part = sent.subarray(at, at + Math.min(room, limits.tunnelMessageBytes));
        room -= part.length;
        at += part.length;
        if (part.length > 0) session.socket.send(Buffer.concat([Buffer.of(0), part]));
        if (room > 0 && rests * 20 * MiB > at) continue;
        if (rests * 20 * MiB <= at) {
          rests++;
          session.socket.pause();
          setTimeout(() => session.socket.resume(), 500);
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
      await eventually(
        'all is back',
        async () => Promise.resolve(count),
        (now) => now === sent.length,
      );
      t.equal(hash.digest('hex'), createHash('sha256').update(sent).digest('hex'));
      session.socket.close();
    });
    t.comment(`resident memory grew by ${grown.map((bytes) => (bytes / MiB).toFixed(1)).join(' and ')} MiB`);
    for (const bytes of grown) t.ok(bytes < 80 * MiB, 'far less than what passed');
    await none();
  });

  await t.test('a reader that does not read stops the process', async (t) => {
    const endless = 'cat\0/dev/zero';
    const session = await exec(['cat', '/dev/zero']);
    session.socket.pause();
    const writes = (): Promise<string> =>
      Promise.resolve(
        processesWith(endless)
          .map((pid) => /wchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
          .join(),
      );
    let before = '';
    let same = 0;
    const { grown } = await whileWatching([rig.gateway.server().pid, rig.agent.server().pid], () =>
      eventually('it writes no more', writes, (now) => {
        same = now !== '' && now === before ? same + 1 : 0;
        before = now;
        return same === 10;
      }),
    );
    for (const bytes of grown) t.ok(bytes < 40 * MiB);
    session.socket.resume();
    await eventually('it writes again', writes, (now) => now !== before);
    session.socket.terminate();
    await none();
    await eventually(
      'it is gone',
      async () => Promise.resolve(processesWith(endless).length),
      (count) => count === 0,
    );
  });

  await t.test('forward: a port of the container, and one where nobody listens', async (t) => {
    const session = await forward(8080);
    session.socket.send(Buffer.from('GET / HTTP/1.0\r\n\r\n'));
    await session.control('end');
    t.match(out(session, 0), /^HTTP\/1\.[01] 200/);
    session.say({ type: 'end' });
    t.match(await session.closed(), { code: 1000, reason: 'done' });
    t.match(await (await forward(9)).closed(), { code: 4502, reason: /^refused: port 9: nothing listens there/ });
    await none();
  });

  await t.test('a session ends with its token, within a second of the revocation', async (t) => {
    const operator = await rig.client('ops', 'operator');
    const acme2 = await rig.client('acme');
    const session = await open(execUrl(['sleep', '4242']), { token: acme2.token });
    await session.control('started');
    const reply = await operator.call('POST', '/api/v2/operator/tenants/acme/revocations', { sub: 'nobody-else' });
    t.equal(reply.status, 201);
    t.equal(session.socket.readyState, session.socket.OPEN, 'that of another subject');
    session.socket.close();
    const other = await rig.client('beta');
    const [theirs] = await other.createRunning([{ name: 'b', ...rig.image, ...small }]);
    const ending = await open(`${rig.baseUrl}${compute}/${theirs?.id}/exec?command=sleep&command=4243`, {
      token: other.token,
    });
    await ending.control('started');
    t.equal((await operator.call('POST', '/api/v2/operator/tenants/beta/revocations', {})).status, 201);
    t.match(await ending.closed(), { code: 4401, reason: /^unauthenticated/ });
    await none();
    await eventually(
      'both are gone',
      async () => Promise.resolve(processesWith('sleep\x00424').length),
      (count) => count === 0,
    );
  });

  await t.test('a container that ends, and one that does not run', async (t) => {
    const [short] = await acme.createRunning([{ name: 'short', ...rig.image, ...small }]);
    const url = `${rig.baseUrl}${compute}/${short?.id}/exec?command=sleep&command=1000`;
    const session = await open(url, { token: acme.token });
    await session.control('started');
    await acme.stop(short!);
    const { code } = await session.closed();
    t.ok([1000, 4409].includes(code), `closed with ${code}`);
    await eventually(
      'it is stopped',
      () => acme.status(short!),
      ({ body }) => body.data.status === 'stopped',
    );
    t.match(await refused(url, { token: acme.token }), { status: 409, body: /it is stopped/ });
    await none();
  });

  await t.test('sessions that break leave nothing', async (t) => {
    const pids = [rig.gateway.server().pid, rig.agent.server().pid];
    const marks = ['sleep', '777777'];
    const breakSome = async (count: number): Promise<void> => {
      for (let left = count; left > 0; left -= limits.sessionsPerContainer) {
        const some = await Promise.all(
          Array.from({ length: Math.min(left, limits.sessionsPerContainer) }, () => exec(marks)),
        );
        for (const { socket } of some) socket.terminate();
        await eventually('they are over', openSessions, (open) => open === 0);
      }
    };
    await breakSome(40);
    const before = pids.map(filesOf);
    const total = process.env['SESSIONS_BROKEN'] ?? '120';
    await breakSome(Number(total));
    await eventually(
      'no process is left',
      async () => Promise.resolve(processesWith(marks.join('\0')).length),
      (count) => count === 0,
    );
    // The agent closes connections to the engine that it has not used for a while.
    const { now } = await eventually(
      'no file is left open',
      async () => Promise.resolve({ before, now: pids.map(filesOf) }),
      ({ now }) => now.every((files, at) => files <= (before[at] ?? 0) + 3),
    );
    t.equal(now.length, pids.length);
  });

  await t.test('a killed agent, gateway or NATS server ends what goes through it', async (t) => {
    const ends = async (what: string, kill: () => Promise<unknown>, expected: { code: number }): Promise<void> => {
      const session = await eventually(
        'it opens',
        () => exec(['sleep', '888888']).catch(() => undefined),
        (one) => one !== undefined,
      );
      await session!.control('started');
      await kill();
      t.match(await session!.closed(), expected, what);
    };
    await ends('the agent', () => rig.agent.kill9(), { code: 4503 });
    await rig.agent.start();
    await eventually(
      'the next agent ends what it left',
      async () => Promise.resolve(processesWith('sleep\x00888888').length),
      (count) => count === 0,
    );
    await ends('the NATS server', () => rig.nats.restart(), { code: 4503 });
    await ends('the gateway', () => rig.gateway.kill9(), { code: 1006 });
    await rig.gateway.start();
    const again = await eventually(
      'it works again',
      () => exec(['echo', 'again']).catch(() => undefined),
      (one) => one !== undefined,
    );
    await has(again!, 'again');
  });
});
