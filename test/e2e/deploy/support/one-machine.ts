/**
 * The commands of docs/deploy.md, "One machine with Compose", run in a copy of this machine that
 * has a Docker engine of its own.
 */
import { chownSync, existsSync, mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { executablesOf, toolHere } from '../../../../dev/fetch/tools.ts';
import { repositoryRoot } from '../../../../dev/paths.ts';
import type { Ran } from '../../../../dev/process/run.ts';
import { demoImage, pushDemoImage, startRegistry } from '../../../../dev/servers/registry.ts';
import { blocksBelow, issuerOf, type MachineCopy } from '../../../integration/deploy/machine-copy.ts';
import { putProgram } from './base.ts';
import { overlayMagic } from './buildah.ts';

const deadlineMs = 400_000;
const nobody = 65_534;

/**
 * Images that stand in for those of compose.yml that are not ours: they have the programs of
 * Debian's packages, and the entry points of the images that they are named like.
 */
async function standIns(folder: string): Promise<string[]> {
  const programs = [
    { image: 'nats:2.12', tool: 'nats-server', entry: '["/bin/nats-server"]' },
    { image: 'redis:7', tool: 'redis-server', entry: '["/bin/env"]' },
    { image: 'prom/prometheus:v2.53.0', tool: 'promtool', program: 'prometheus', entry: '["/bin/prometheus"]' },
  ] as const;
  const imports: string[] = [];
  for (const { image, tool, entry, ...named } of programs) {
    const { env } = await toolHere(tool);
    const name = 'program' in named ? named.program : tool;
    const [program] = executablesOf([name], env);
    if (program === undefined) throw new Error(`there is no ${name}`);
    const root = join(folder, name);
    mkdirSync(join(root, 'tmp'), { recursive: true });
    await putProgram(root, program, { to: `bin/${name}`, env });
    await putProgram(root, (await toolHere('busybox')).path, { to: 'bin/env', env });
    mkdirSync(join(root, 'prometheus'));
    chownSync(join(root, 'prometheus'), nobody, nobody);
    const user = name === 'prometheus' ? ` --change 'USER ${nobody}'` : '';
    const variables = '--change "ENV PATH=/bin" --change "ENV LD_LIBRARY_PATH=/usr/lib"';
    imports.push(`tar -C ${root} -c . | docker import ${variables} --change 'ENTRYPOINT ${entry}'${user} - ${image}`);
  }
  return imports;
}

/** @param images a file with our images, as `docker save` writes it */
export async function runOnOneMachine({ folder, file, run }: MachineCopy, images: string): Promise<Ran> {
  const page = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8');
  const [setUp, start = '', join_ = ''] = blocksBelow(page, '## One machine with Compose');
  const [dockerd, compose, registryTool] = [
    await toolHere('dockerd'),
    await toolHere('docker-compose'),
    await toolHere('docker-registry'),
  ];
  const registry = await startRegistry({ folder: join(folder, 'registry') });
  try {
    await pushDemoImage(registry.address);
  } finally {
    await registry.stop();
  }
  const imports = await standIns(join(folder, 'stand-ins'));
  const driver = statfsSync(folder).type === overlayMagic ? 'vfs' : 'overlay2';
  const cgroup = `longshore-compose-${process.pid}`;
  const script = [
    'set -euo pipefail',
    "trap 'tail -n 20 /var/log/dockerd.log; docker ps -a; cd /srv/deploy/compose && docker compose logs --tail 15' ERR",
    `dockerd --host unix:///run/docker.sock --storage-driver ${driver} --cgroup-parent /${cgroup} \\`,
    '  --exec-opt native.cgroupdriver=cgroupfs --insecure-registry 127.0.0.0/8 >/var/log/dockerd.log 2>&1 &',
    'engine=$!',
    'for _ in $(seq 300); do docker version >/dev/null 2>&1 && break; sleep 0.2; done',
    `docker load --quiet --input ${images}`,
    ...imports,
    `(cd ${folder}/registry && exec ${registryTool.path} serve config.yml >/var/log/registry.log 2>&1) &`,
    // The address that the page uses as that of the machine.
    'ip address add 192.0.2.7/32 dev lo',
    // The repository is this machine's: secrets are made in a copy.
    'cp -r /opt/longshore/deploy /srv/deploy && cd /srv',
    setUp,
    'mkdir /root/longshore-issuer && cd /root/longshore-issuer',
    `cp ${folder}/issuer.mjs .`,
    'OPERATOR=$(node issuer.mjs operator olga 3600 operator)',
    'TENANT=$(node issuer.mjs acme alice 3600)',
    'cd /srv/deploy/compose',
    // There is no Grafana in Debian.
    start.replace(' grafana', ''),
    // Hosts pull from public registries alone, if their operator says no more.
    `printf '%s\\n' 'services: { host-agent: { environment: { REGISTRIES_ALLOWED: "127.0.0.1:*" } } }' >compose.override.yml`,
    'API=http://127.0.0.1:8080/api/v2',
    "JSON='Content-Type: application/json'",
    'curl -fsS -H "Authorization: Bearer $OPERATOR" -H "$JSON" $API/operator/hosts \\',
    `  -d '{"key": "host-1", "region": "eu"}' | jq -r .data.join_token > secrets/join-token`,
    `curl -fsS -X PUT -H "Authorization: Bearer $OPERATOR" -H "$JSON" $API/operator/tenants/acme -d '{"regions": ["eu"]}'`,
    join_,
    'made=$(curl -fsS -H "Authorization: Bearer $TENANT" -H "$JSON" $API/compute -d \'{"name": "web", "ports": [8080],',
    `  "registry": "${registry.address}", "repository": "${demoImage.repository}", "tag": "${demoImage.tag}",`,
    '  "cpu_limit": "0.25", "mem_limit": "64m"}\' | jq -r .data.id)',
    'curl -fsS -H "Authorization: Bearer $TENANT" "$API/compute/$made/wait?status=running&timeout=60"',
    'prometheus=$(docker inspect -f "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}" longshore-prometheus-1)',
    "up() { curl -fsS http://$prometheus:9090/api/v1/query --data-urlencode 'query=up == 1' | jq -c '[.data.result[].metric.job] | sort'; }",
    'for _ in $(seq 60); do [ "$(up | jq length)" = 4 ] && break; sleep 1; done',
    'echo; up',
    "fired() { docker compose logs host-agent | grep -o 'container_firewall_[a-z]*' | sort -u | xargs; }",
    'for _ in $(seq 90); do fired | grep -q checked && break; sleep 1; done; fired',
    'curl -fsS -X DELETE -H "Authorization: Bearer $TENANT" $API/compute/$made >/dev/null',
    'curl -fsS -H "Authorization: Bearer $TENANT" "$API/compute/$made/wait?status=removed&timeout=60" >/dev/null',
    'docker compose restart && docker compose up -d --wait gateway host-agent',
    'curl -fsS -H "Authorization: Bearer $TENANT" $API/compute',
    'docker compose down --volumes --timeout 20',
    'kill $engine && wait $engine',
    `find /sys/fs/cgroup -depth -type d -path '*/${cgroup}*' -exec rmdir {} + 2>/dev/null || true`,
  ].join('\n');
  const [docker] = executablesOf(['docker'], dockerd.env);
  const env = Object.fromEntries(
    ['PATH', 'LD_LIBRARY_PATH', 'XTABLES_LIBDIR'].map((name) => [name, dockerd.env[name] ?? process.env[name] ?? '']),
  );
  const seen = [
    dirname(registryTool.path),
    dirname(docker ?? ''),
    ...Object.values(env).flatMap((paths) => paths.split(':').filter((path) => existsSync(path))),
  ];
  const prepare = [
    'mount -t sysfs sysfs root/sys && mount --rbind /sys/fs/cgroup root/sys/fs/cgroup',
    `mkdir -p root/var/lib/docker && mount --bind ${folder}/disk root/var/lib/docker`,
    `mount --bind ${folder} root${folder}`,
    // A folder of this machine that is below a mount of its own is not in the copy.
    ...seen.map((path) => `[ -d root${path} ] || { mkdir -p root${path} && mount --bind ${path} root${path}; }`),
    'mkdir -p root/usr/libexec/docker/cli-plugins',
    `install -m 0755 ${compose.path} root/usr/libexec/docker/cli-plugins/docker-compose`,
  ];
  file('issuer.mjs', issuerOf(page));
  return run(script, { prepare, deadlineMs, env });
}
