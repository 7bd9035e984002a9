/** An operator's commands on real parts: an engine, NATS, a host that joins, and its agent. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { join } from 'node:path';
import t from 'tap';
import { programFile } from '../../../../dev/stack/programs.ts';
import type { Finding } from '../../../../host-agent/doctor/finding.ts';
import { quick } from '../../../host-agent/support/agent.ts';
import { joinToken } from '../../../host-agent/support/enrolment.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';

t.test('join and doctor', async (t) => {
  const { controlPlane, dockerHost, stateDir, agent, engine, script } = await startRig(t);
  const command = async (words: readonly string[], more: NodeJS.ProcessEnv = {}, input = '') => {
    const child = spawn(process.execPath, [programFile('host-agent'), ...words], {
      env: {
        ...process.env,
        ...quick,
        DOCKER_HOST: dockerHost,
        STATE_DIR: stateDir,
        LONGSHORE_URL: controlPlane.gatewayUrl,
        ...more,
      },
    });
    child.stdin.end(input);
    const [out, error, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { out, error, code: code as number };
  };
  const doctor = async (more: NodeJS.ProcessEnv = {}) => {
    const { out, code } = await command(['doctor', '--json'], more);
    const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: Finding[] };
    t.equal(code, ok ? 0 : 1);
    const failed = findings.filter(({ verdict }) => verdict === 'fail').map(({ check }) => check);
    return { failed, says: (check: string) => findings.find((each) => each.check === check)?.says ?? 'nothing' };
  };

  await t.test('unknown words are refused, with the usage', async (t) => {
    t.match(await command(['examine']), { code: 2, error: /there is no command examine[^]*usage:/ });
    t.match(await command(['help']), { code: 0, out: /usage:/ });
    t.notOk(existsSync(stateDir));
  });

  await t.test('before the host has joined, the doctor says so, and makes nothing', async (t) => {
    const { failed, says } = await doctor();
    t.same(failed, ['credentials']);
    t.match(says('credentials'), /has not joined/);
    t.match(says('engine'), /docker \d+\.\d+.*, API 1\.\d+/);
    t.match(says('clock'), /agrees/);
    t.notOk(existsSync(stateDir));
    t.same(await engine.containers(), []);
  });

  await t.test('a token that is refused, and then the right one from standard input', async (t) => {
    const wrong = await command(['join', '--token', joinToken.replace('xxx', 'yyy')]);
    t.match(wrong, { code: 1, error: /refused the join token \(status 401\).*make a new one/ });
    const joined = await command(['join', '--token-file', '-'], {}, `${joinToken}\n`);
    t.match(joined, { code: 0, out: /enrolled as/, error: '' });
    const before = readFileSync(join(stateDir, 'identity.json'), 'utf8');
    t.match(await command(['join', '--token', joinToken]), { code: 0, out: /enrolled already/ });
    t.equal(readFileSync(join(stateDir, 'identity.json'), 'utf8'), before);
  });

  await t.test('the agent does not start with credentials of release 0.1.0', async (t) => {
    const path = join(stateDir, 'identity.json');
    const enrolled = readFileSync(path, 'utf8');
    const before = { ...(JSON.parse(enrolled) as { jwt: string }), jwt: 'a.e30.c' };
    writeFileSync(path, JSON.stringify(before));
    const { code, error } = await command([]);
    t.equal(code, 1);
    t.match(
      error.split('\n').filter((line) => line.includes('"level":"error"')),
      [
        /"event":"configuration_invalid".*credentials of release 0\.1\.0 .*enrol this host again .*host-agent join --token-file/,
      ],
    );
    writeFileSync(path, enrolled);
  });

  const running = agent({ LONGSHORE_JOIN_TOKEN: '' });
  const { id } = controlPlane.desire(await script('steady', steady));
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');

  await t.test('beside the agent, which started without a token, all is well', async (t) => {
    const hellos = controlPlane.hellos().length;
    const { failed, says } = await doctor();
    t.same(failed, []);
    t.match(says('agent'), /^runs on/);
    t.match(says('control plane'), /it is the enrolled one/);
    t.equal(controlPlane.hellos().length, hellos, 'the agent keeps its session');
    t.match(await command(['doctor']), { code: 0, out: /^ok +credentials +of host/m });
    t.match(await command(['join', '--token', joinToken]), { code: 0, out: /enrolled already/ });
  });

  await t.test('a copy of the state folder is noticed', async (t) => {
    const copy = `${stateDir}-copy`;
    mkdirSync(copy);
    for (const name of ['identity.json', 'agent.nk']) cpSync(join(stateDir, name), join(copy, name));
    const { failed, says } = await doctor({ STATE_DIR: copy });
    t.same(failed, ['agent']);
    t.match(says('agent'), /on a copy of/);
    // Another key than that of the credentials.
    rmSync(join(copy, 'agent.nk'));
    t.match((await doctor({ STATE_DIR: copy })).says('credentials'), /agent\.nk\) is gone/);
  });

  await t.test('a key that is no longer the enrolled one, and then no server', async (t) => {
    controlPlane.forget();
    const forgotten = await doctor();
    t.same(forgotten.failed, ['control plane']);
    t.match(forgotten.says('NATS'), /connected to/);
    const away = await doctor({ NATS_URLS: 'nats://127.0.0.1:9', DOCKER_HOST: `unix://${stateDir}/none.sock` });
    t.same(away.failed, ['engine', 'NATS']);
    t.match(away.says('engine'), /there is no socket/);
  });
  await running.stop();
});
