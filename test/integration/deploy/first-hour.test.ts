/** The commands of docs/deploy.md, "The operator's first hour", run in a copy of this machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { executablesOf, toolHere } from '../../../dev/fetch/tools.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { blocksBelow, issuerOf, machineCopy } from './machine-copy.ts';
import { canStartEngine } from '../../support/servers.ts';

t.setTimeout(300_000);
const deadlineMs = 240_000;
const page = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8');

function commandsOf(part: string): string {
  const [block] = blocksBelow(page, `### First hour: ${part}`);
  if (block === undefined) throw new Error(`docs/deploy.md has no commands below "First hour: ${part}"`);
  return block;
}

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
  const nats = await toolHere('nats-server');
  const missing = ['curl', 'jq', 'openssl', 'useradd', 'setpriv'].filter(
    (name) => executablesOf([name], process.env)[0] === undefined,
  );
  if (missing.length > 0) return t.pass('this machine lacks programs', { skip: missing.join(', ') });
  const { folder, file, run } = machineCopy(t);
  const parts = ['users and keys', 'NATS', 'an issuer of tokens', 'actors and gateway', 'a host and its tenant'];
  const script = [
    'set -euo pipefail',
    "trap 'tail -n 5 /tmp/*.log' ERR",
    // The account that the packages make; the machine of the test has the programs from elsewhere.
    'useradd --system --user-group --no-create-home nats',
    ...parts.flatMap((part) => [
      ...(part === 'an issuer of tokens' ? [`cp ${folder}/issuer.mjs /root/longshore-issuer/`] : []),
      commandsOf(part),
    ]),
    'echo; curl -fsS -H "Authorization: Bearer $OPERATOR" $API/operator/hosts',
    'curl -fsS -H "Authorization: Bearer $TENANT" $API/compute',
    'echo "token of $(wc -c < /root/join-token) bytes"',
  ].join('\n');
  const prepare = [
    // JetStream sets aside a share of the disk, and a tmpfs is small.
    `mkdir -p root/var/lib/nats && mount --bind ${folder}/disk root/var/lib/nats`,
    `install -m 0755 ${file('systemctl', systemctl)} root/usr/bin/systemctl`,
    `install -m 0755 ${nats.path} root/usr/sbin/nats-server`,
    `install ${file('issuer.mjs', issuerOf(page))} root${folder}/`,
  ];
  const ran = await run(script, { prepare, deadlineMs });
  t.equal(ran.code, 0, ran.stdout + ran.stderr);
  t.match(ran.stdout, /"key":"host-1"/, 'the host is declared');
  t.match(ran.stdout, /\{"data":\[\]/, 'the tenant reads its containers');
  t.match(ran.stdout, /token of \d{2,} bytes/);
});
