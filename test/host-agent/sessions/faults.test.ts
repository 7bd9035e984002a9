import t from 'tap';
import { EngineError } from '../../../host-agent/docker/errors.ts';
import {
  faultInAnswer,
  faultInOutput,
  loggedFault,
  sessionFault,
  startFault,
} from '../../../host-agent/sessions/faults.ts';

const failed = 'OCI runtime exec failed: exec failed: ';

/** Messages of runc 1.0 to 1.2, crun and Docker 20.10 to 28. */
const rows: readonly (readonly [detail: string, sentence: string])[] = [
  [
    `${failed}container_linux.go:380: starting container process caused: exec: "hunter2": executable file not found in $PATH: unknown`,
    'the container has no such program',
  ],
  [
    `${failed}unable to start container process: exec: "/x": stat /x: no such file or directory: unknown`,
    'the container has no such program',
  ],
  [
    `${failed}unable to start container process: exec: "/etc/passwd": permission denied: unknown`,
    'the user may not run this program',
  ],
  [
    `${failed}unable to start container process: chdir to cwd ("/proc/self/fd/8") set in config.json failed: no such file or directory: unknown`,
    'the process may not work in this folder, or the container has no such folder',
  ],
  ['unable to find user bob: no matching entries in passwd file', 'the container has no such user'],
  [
    `${failed}unable to start container process: exec /x: exec format error`,
    'the program is not made for the platform of this host',
  ],
  ['Container 0a1b is paused, unpause the container before exec', 'the container does not run'],
];
const other = 'the process could not be started; the log of the engine on this host has the reason: ask the operator';

t.test('a tenant gets a sentence of ours, and no log the command', (t) => {
  for (const [detail, sentence] of rows) {
    t.equal(startFault(detail), sentence);
    const error = new EngineError('exec start', { kind: 'refused', status: 400 }, detail);
    t.equal(sessionFault(error), sentence);
    t.notMatch(JSON.stringify(loggedFault(error)), 'hunter2');
  }
  t.equal(startFault('procReady not received at /var/run/docker/x'), other);
  const away = new EngineError('exec start', { kind: 'unreachable' }, 'connect /var/run/docker.sock');
  t.equal(sessionFault(away), 'the container engine of the host does not answer');
  t.equal(sessionFault(new Error('EACCES /var/lib/longshore')), other);
  t.end();
});

t.test('so does the stream, where the engine has opened it already, with the code of shells', (t) => {
  const codes = [127, 127, 126, 126] as const;
  for (const [index, [detail, message]] of rows.slice(0, 4).entries())
    t.same(faultInOutput(Buffer.from(`${detail}\r\n`)), { message, code: codes[index] });
  const noUser = 'unable to find user bob: no matching entries in passwd file';
  t.match(faultInOutput(Buffer.from(`${noUser}\r\n`)), { code: 126, message: /no such user/ });
  for (const output of [
    'hello',
    'x OCI runtime exec failed: x',
    '',
    '\u001b[2J',
    `${noUser}\nmore`,
    'unable to find user',
  ])
    t.equal(faultInOutput(Buffer.from(output)), undefined, 'the output of a process stays');
  t.end();
});

t.test('an answer in the place of the stream is the same, if it is about the process', (t) => {
  const answered = (detail: string, status = 400) =>
    faultInAnswer(new EngineError('exec start', { kind: 'refused', status }, detail));
  t.same(answered(rows[0]![0]), { message: rows[0]![1], code: 127 });
  t.same(answered(rows[4]![0]), { message: rows[4]![1], code: 126 });
  t.equal(answered(rows[6]![0], 409), undefined, 'a container that does not run');
  t.equal(answered('procReady not received'), undefined);
  t.equal(faultInAnswer(new EngineError('exec start', { kind: 'unreachable' }, 'connect')), undefined);
  t.end();
});
