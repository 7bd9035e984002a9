/** VPN peers of a tenant, and what operators do, by the command line against all of Longshore. */
import { randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../support/folder.ts';
import { commandLine } from '../support/command-line.ts';
import { startRig } from '../support/rig.ts';

t.setTimeout(900_000);

t.test('peers and operators', async (t) => {
  const rig = await startRig(t, {
    gateway: { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`, VPN_DEFAULT_NETWORK: 'office' },
  });
  const folder = temporaryFolder(t);
  const { longshore, onTerminal } = commandLine(t);
  const envOf = async (tenant: string, scope?: string) => ({
    LONGSHORE_SERVER: rig.baseUrl,
    LONGSHORE_TOKEN: (await rig.client(tenant, scope)).token,
  });
  const [acme, ops] = [await envOf('acme'), await envOf('ops', 'operator')];
  const okAs = async (env: NodeJS.ProcessEnv, args: readonly string[]): Promise<string> => {
    const { code, out, err } = await longshore(args, { env });
    t.equal(code, 0, `${args.join(' ')}: ${err}`);
    return out;
  };
  const ok = (...args: string[]): Promise<string> => okAs(acme, args);
  const operator = (...args: string[]): Promise<string> => okAs(ops, args);

  await t.test('a network: made, changed without a loss, read', async (t) => {
    t.match(await longshore(['network', 'set', 'office', 'endpoint=vpn.example.com'], { env: ops }), {
      code: 1,
      err: /ipv4_pool/,
    });
    const made = ['endpoint=vpn.example.com', 'ipv4_pool=10.86.0.0/24', 'tenants=acme', 'dns=10.86.0.1'];
    t.match(await longshore(['network', 'set', 'office', ...made], { env: ops }), {
      code: 0,
      out: 'office\n',
      err: /^endpoint: not set → "vpn.example.com"$/m,
    });
    t.match(await longshore(['network', 'set', 'office', 'mtuu=1400'], { env: ops }), {
      code: 2,
      err: /there is no setting "mtuu": did you mean mtu\?/,
    });
    t.match(await longshore(['network', 'set', 'office', 'mtu=1400', '--dry-run'], { env: ops }), {
      code: 0,
      err: 'mtu: null → 1400\n',
    });
    await operator('network', 'set', 'office', 'wireguard_port=51821');
    const ofNobody = ['endpoint=lab.example.com', 'ipv4_pool=10.87.0.0/24'];
    t.match(await longshore(['network', 'set', 'lab', ...ofNobody], { env: ops }), {
      code: 0,
      err: /no tenant may make peers in it: name them with tenants=/,
    });
    await operator('network', 'rm', 'lab');
    t.match(JSON.parse(await operator('network', 'get', 'office')), {
      mtu: null,
      dns: ['10.86.0.1'],
      tenants: ['acme'],
      wireguard_port: 51821,
    });
    t.match(await operator('network', 'ls'), /^office +vpn.example.com +10.86.0.0\/24 +\d+ of \d+ +acme$/m);
    t.match(await longshore(['network', 'ls'], { env: acme }), { code: 1, err: /lacks the scope operator/ });
  });

  await t.test('a peer: made, its files, its links, removed', async (t) => {
    const made = await longshore(['peer', 'add', 'laptop', '--expires', '30d'], { env: acme });
    t.match(made, {
      code: 0,
      out: /^[0-9a-f-]{36} {2}10\.86\.0\.\d+\n$/,
      err: /shown this once: \S+\nNext: longshore/,
    });
    t.match(await ok('peer', 'ls'), /^laptop +[0-9a-f]{8} +office +active +10\.86\.0\./m);
    const text = await ok('peer', 'config', 'laptop');
    t.match(text, /^\[Interface\]\nPrivateKey = /m);
    const file = join(folder, 'laptop.conf');
    t.equal(await ok('peer', 'config', 'laptop', '-o', file), `${file}\n`);
    t.equal(readFileSync(file, 'utf8'), text);
    t.equal(statSync(file).mode & 0o777, 0o600);
    t.match(await ok('peer', 'config', 'laptop', '--format', 'mobileconfig'), /<plist/);
    const bundle = join(folder, 'laptop.p12');
    await ok('peer', 'config', 'laptop', '--format', 'p12', '--output', bundle);
    t.equal(readFileSync(bundle)[0], 0x30, 'DER');
    t.match(await ok('peer', 'qr', 'laptop'), /^[ ▀▄█]{60,}$/m);
    const shown = await longshore(['peer', 'qr', 'laptop', '-o', join(folder, 'qr.svg')], { env: acme });
    t.match([shown.code, readFileSync(join(folder, 'qr.svg'), 'utf8')], [0, /<svg/]);
    t.match(await onTerminal(['peer', 'qr', 'laptop'], [], acme), {
      code: 0,
      out: `[30;107m${' '.repeat(60)}`,
    });
    const { id, links } = JSON.parse(await ok('peer', 'link', 'laptop', '--expires', '1h', '--json')) as {
      id: string;
      links: { for: string; url: string }[];
    };
    t.equal(await (await fetch(links[0]?.url ?? '')).text(), text, 'without a sign-in');
    await ok('peer', 'unlink', 'laptop', id);
    t.equal((await fetch(links[0]?.url ?? '')).status, 401);
    t.match(await ok('peer', 'link', 'laptop', '--pac'), /^Proxy auto-config +http\S+\/api\/forage\/pac\?token=/m);
    const once = await ok('peer', 'link', 'laptop', '--once', '--expires', '7d');
    t.match(once, /^http\S+\/vpn#lsl_\d+_[\w-]{43}\n$/);
    const listed = await ok('peer', 'links', 'laptop');
    const [, onceId = ''] = /^(\S+) +once +\S+ +20\S+Z$/m.exec(listed) ?? [];
    t.match(listed, /^ID +KIND +AGE +ENDS +OPENED\n(?:\S+ +(?:download|pac|once) .*\n){4}$/);
    t.equal(await ok('peer', 'unlink', 'laptop', onceId), `${onceId}\n`);
    t.notMatch(await ok('peer', 'links', 'laptop'), 'once');
    t.match(await longshore(['peer', 'unlink', 'laptop', onceId], { env: acme }), { code: 1, err: /\S/ });
    t.match(await longshore(['peer', 'link', 'laptop', '--once', '--pac'], { env: acme }), {
      code: 2,
      err: /cannot be used with/,
    });
    t.match(await ok('peer', 'password', 'laptop'), /^\S{12,}\n$/);
    await ok('peer', 'disable', 'laptop');
    t.match(JSON.parse(await ok('peer', 'inspect', 'laptop')), { state: 'disabled', enabled: false });
    t.match(await longshore(['peer', 'config', 'laptop'], { env: acme }), { code: 1, err: /\S/ });
    await ok('peer', 'enable', 'laptop');
    t.match(await longshore(['peer', 'rotate', 'laptop'], { env: acme }), { code: 0, err: /shown this once/ });
    t.not(await ok('peer', 'config', 'laptop'), text, 'other keys');
    t.match(await longshore(['peer', 'rm', 'laptp'], { env: acme }), { code: 1, err: /there is no peer "laptp"/ });
    t.match(await longshore(['peer', 'add', 'x', '--expires', 'soon'], { env: acme }), {
      code: 2,
      err: /or a span such/,
    });
    t.equal(await ok('peer', 'rm', 'laptop'), 'laptop\n');
    t.equal(await ok('peer', 'ls'), 'There are no peers.\n');
    t.equal(await operator('network', 'rm', 'office'), 'office\n');
  });

  await t.test("the key of a network's authority leaked: another network takes its place", async (t) => {
    const of = (pool: string): string[] => ['endpoint=vpn.example.com', `ipv4_pool=${pool}`, 'tenants=acme'];
    const authorityOf = async (network: string): Promise<string | undefined> => {
      const client = await rig.client('ops', 'operator');
      const { status, text } = await client.call('GET', `/api/v2/operator/networks/${network}/ca.pem`);
      return status === 200 ? text : undefined;
    };
    await operator('network', 'set', 'office', ...of('10.86.0.0/24'));
    await ok('peer', 'add', 'laptop');
    const [leaked, before] = [await authorityOf('office'), await ok('peer', 'config', 'laptop')];

    await operator('network', 'set', 'office2', ...of('10.88.0.0/24'), 'wireguard_port=51821');
    await ok('peer', 'add', 'laptop2', '--network', 'office2');
    t.match(await longshore(['network', 'rm', 'office'], { env: ops }), { code: 1, err: /peer/ }, 'it has a peer');
    await ok('peer', 'rm', 'laptop');
    await operator('network', 'rm', 'office');
    t.equal(await authorityOf('office'), undefined);
    const next = await authorityOf('office2');
    t.ok(next !== undefined && next !== leaked, 'an authority of its own');
    t.not(await ok('peer', 'config', 'laptop2'), before);
    t.notMatch(await ok('peer', 'ls'), /^\S+ +laptop +office /m);
    await ok('peer', 'rm', 'laptop2');
    await operator('network', 'rm', 'office2');
  });

  await t.test('a tenant: settings are merged, and the plan is shown', async (t) => {
    t.match(await longshore(['tenant', 'set', 'acme', 'caps.contaners=5'], { env: ops }), {
      code: 2,
      err: /did you mean containers\?/,
    });
    t.match(await longshore(['tenant', 'set', 'acme', 'caps.containers=30'], { env: ops }), {
      code: 0,
      err: /^caps.containers: 20 → 30$/m,
    });
    const file = join(folder, 'acme.yml');
    writeFileSync(file, 'regions: [default, eu]\ncaps:\n  vpn_peers: 3\n');
    t.match(await longshore(['tenant', 'set', 'acme', '--file', file], { env: ops }), {
      code: 0,
      err: 'regions: ["default"] → ["default","eu"]\ncaps.vpn_peers: 10 → 3\n',
    });
    const caps = { containers: 30, vpn_peers: 3, ports: 30 * 50 };
    t.match(JSON.parse(await operator('tenant', 'get', 'acme')), { regions: ['default', 'eu'], caps });
    await operator('tenant', 'set', 'acme', 'caps.containers=10');
    t.match(
      JSON.parse(await operator('tenant', 'get', 'acme')),
      { caps: { ports: 10 * 50 } },
      'what follows another cap still does',
    );
    t.match(await longshore(['tenant', 'set', 'acme', 'caps.containers=10'], { env: ops }), {
      code: 0,
      err: 'nothing changes\n',
    });
  });

  await t.test('faults of a deployment', async (t) => {
    t.match(await longshore(['doctor'], { env: ops }), {
      code: 0,
      out: /^✓ server: answers in \d+ ms\n✓ TLS: .*\n✓ clock: .*\n✓ ready: .*\n✓ version: .*\n✓ token: accepted, until .*\n✓ hosts: 1, all up and without faults\n$/,
    });
    t.match(JSON.parse(await ok('doctor', '--json')), [{ name: 'server', ok: true }]);
    await operator('host', 'join-token', 'h9');
    t.match(await longshore(['doctor'], { env: ops }), { code: 1, out: /^✗ host h9: joining\n {2}start its agent/m });
    t.match(await longshore(['host', 'join-token', 'h9', '--region', 'eu'], { env: ops }), {
      code: 1,
      err: /^h9 is in region default, and a host keeps its region/,
    });
    const broken = await longshore(['doctor'], { env: { ...ops, LONGSHORE_TOKEN: 'no.token' } });
    t.match(broken, { code: 1, out: /^✗ token: unauthenticated\n {2}sign in again/m });
    const expired = { ...acme, LONGSHORE_TOKEN: `${acme.LONGSHORE_TOKEN.slice(0, -6)}AAAAAA` };
    t.match(await longshore(['doctor'], { env: expired }), { code: 1, out: /^✗ token: unauthenticated\n {2}sign in/m });
    const away = { ...acme, LONGSHORE_SERVER: 'http://127.0.0.1:1' };
    t.match(await longshore(['doctor'], { env: away }), {
      code: 1,
      out: /^✗ server: no answer: .*\n {2}check the addr/,
    });
  });

  await t.test('commands of a cluster', async (t) => {
    const keys = join(folder, 'keys');
    t.match(await operator('nats-keys', keys, 'g1'), /^HOSTS_ACCOUNT +A[A-Z2-7]{55}$/m);
    t.match(await longshore(['backup', '--help']), { code: 0, out: /^Usage: longshore backup \[options\] <folder>/ });
    t.match(await longshore(['backup', 'x', '--without-log']), { code: 2, err: /Did you mean --without-logs\?/ });
    t.match(await longshore(['restore']), { code: 2, err: /missing required argument 'folder'/ });
  });

  await t.test('signing keys, and tokens that are refused', async (t) => {
    await ok('token', 'create', 'ci', '--scope', 'read', '--expires', '2d');
    t.match(await operator('signing-key', 'rotate'), /^\S+ +current +0s\n\S+ +until /m);
    t.match(await operator('signing-key', 'ls'), /^KEY +SIGNS +AGE\n/);
    t.match(await longshore(['revoke', 'acme'], { env: ops }), { code: 2, err: /one of --subject, --token and --all/ });
    t.match(await operator('revoke', 'acme', '--all'), /^tokens issued until \S+ of acme refused\n$/);
    const lines = await operator('audit', '--tenant', 'acme', '--action', 'tenant.revoke');
    t.match(
      lines,
      /^TIME +BY +ADDRESS +ACTION +TARGET +OUTCOME +REQUEST\n\S+ +\S+ +\S+ +tenant\.revoke +acme +done +\S+\n$/,
    );
    t.match(await longshore(['audit', '--all', '--tenant', 'acme'], { env: ops }), {
      code: 2,
      err: /--all and --tenant/,
    });
    t.match(await longshore(['ps'], { env: acme }), { code: 1, err: /Sign in with/ });
  });
});
