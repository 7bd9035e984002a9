/**
 * The commands of docs/deploy.md, "The operator's first hour", run in a copy of this machine: its
 * files are the lower layer of an overlay, and networks and processes have namespaces of their own.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { executablesOf, toolHere } from '../../../dev/fetch/tools.ts';
import { repositoryRoot, shortTemporaryRoot } from '../../../dev/paths.ts';
import { run } from '../../../dev/process/run.ts';
import { canStartEngine } from '../../support/servers.ts';

t.setTimeout(300_000);
const deadlineMs = 240_000;
const page = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8');

/** The commands below a heading. */
function commandsOf(heading: string): string {
  const [, part = ''] = page.split(`\n### ${heading}\n`);
  const [own = ''] = part.split(/^#{2,3} /m);
  const blocks = [...own.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);
  if (blocks.length === 0) throw new Error(`docs/deploy.md has no commands below "${heading}"`);
  return blocks[0] ?? '';
}

const issuer = /^```js\n([^]*?)^```$/m.exec(page)?.[1] ?? '';

/**
 * Stands in for systemd, which does not run in a namespace: starts a unit as its file says, with
 * its user, its environment file and its command.
 */
const systemctl = `#!/bin/bash
case $1 in daemon-reload) exit 0 ;; esac
for unit in "$@"; do
  case $unit in
    nats-server)
      command=$(sed -n 's/^ExecStart=\\(..*\\)/\\1/p' /etc/systemd/system/nats-server.service.d/longshore.conf)
      setsid setpriv --reuid=nats --regid=nats --clear-groups $command >/tmp/$unit.log 2>&1 & ;;
    longshore-*)
      of() { sed -n "s/^$1=//p" /etc/systemd/system/$unit.service; }
      cd "$(of WorkingDirectory)"
      environment=$(grep -v '^#' "$(of EnvironmentFile)")
      setsid setpriv --reuid="$(of User)" --regid="$(of Group)" --clear-groups --inh-caps=-all \\
        env -i $environment $(of ExecStart) >/tmp/$unit.log 2>&1 & ;;
  esac
done
`;

const skip = canStartEngine ? false : 'namespaces need Linux and root';

t.test('the first hour, up to the start of the agent', { skip }, async (t) => {
  const [nats, ip] = [await toolHere('nats-server'), await toolHere('ip').catch(() => toolHere('busybox'))];
  const missing = ['curl', 'jq', 'openssl', 'useradd', 'setpriv'].filter(
    (name) => executablesOf([name], process.env)[0] === undefined,
  );
  if (missing.length > 0) return t.pass('this machine lacks programs', { skip: missing.join(', ') });
  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-hour-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
    return join(folder, name);
  };
  const headings = ['users and keys', 'NATS', 'an issuer of tokens', 'actors and gateway', 'a host and its tenant'];
  const hour = file(
    'hour.sh',
    [
      'set -euo pipefail',
      "trap 'tail -n 5 /tmp/*.log' ERR",
      // What the packages bring, which the machine of the test has elsewhere.
      'useradd --system --user-group --no-create-home nats',
      ...headings.flatMap((heading) => [
        ...(heading === 'an issuer of tokens' ? [`cp ${file('issuer.mjs', issuer)} /root/longshore-issuer/`] : []),
        commandsOf(`First hour: ${heading}`),
      ]),
      'echo; curl -fsS -H "Authorization: Bearer $OPERATOR" $API/operator/hosts',
      'curl -fsS -H "Authorization: Bearer $TENANT" $API/compute',
      'echo "token of $(wc -c < /root/join-token) bytes"',
    ].join('\n'),
  );
  const link = ip.name === 'busybox' ? `${ip.path} ip` : ip.path;
  const enter = file(
    'enter.sh',
    [
      'set -euo pipefail',
      `${link} link set lo up`,
      // An upper layer cannot lie within the lower one.
      `mount -t tmpfs tmpfs ${folder}/layers`,
      `mkdir ${folder}/layers/{upper,work,root}`,
      `cd ${folder}/layers`,
      'mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root',
      'mount -t proc proc root/proc && mount --rbind /dev root/dev && mount -t tmpfs tmpfs root/tmp',
      // What this machine has of an installation of its own.
      'rm -rf root/etc/{nats,longshore} root/var/lib/{nats,longshore-agent} root/root/longshore-*',
      'for user in nats longshore longshore-agent; do chroot root userdel $user 2>/dev/null || true; done',
      'mkdir -p root/opt/longshore root/run && mount -t tmpfs tmpfs root/run',
      `mount --bind ${repositoryRoot} root/opt/longshore`,
      // JetStream sets aside a share of the disk, and a tmpfs is small.
      `mkdir -p root/var/lib/nats && mount --bind ${folder}/disk root/var/lib/nats`,
      `install -m 0755 ${file('systemctl', systemctl)} root/usr/bin/systemctl`,
      `install -m 0755 ${nats.path} root/usr/sbin/nats-server`,
      `[ -x /usr/bin/node ] || install -m 0755 ${process.execPath} root/usr/bin/node`,
      `install -d root${folder} && install -m 0755 ${hour} ${folder}/issuer.mjs root${folder}/`,
      // As a person's shell has it: tap names a file that is not there to every process.
      `exec env -i PATH="$PATH" HOME=/root USER=root chroot root /bin/bash ${hour}`,
    ].join('\n'),
  );
  for (const name of ['layers', 'disk']) mkdirSync(join(folder, name));
  const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child'];
  const ran = await run('unshare', [...namespaces, 'bash', enter], { deadlineMs });
  t.equal(ran.code, 0, ran.stdout + ran.stderr);
  t.match(ran.stdout, /"key":"host-1"/, 'the host is declared');
  t.match(ran.stdout, /\{"data":\[\]/, 'the tenant reads its containers');
  t.match(ran.stdout, /token of \d{2,} bytes/);
});
