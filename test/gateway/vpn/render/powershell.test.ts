import { X509Certificate } from 'node:crypto';
import t from 'tap';
import { fileName } from '../../../../gateway/vpn/render/filename.ts';
import { Unfit } from '../../../../gateway/vpn/render/fit.ts';
import { powershell } from '../../../../gateway/vpn/render/powershell.ts';
import { breaking, caPem, label, nasty, networkWith, peerId, proxy, subjectWith } from '../support.ts';

const ca = new X509Certificate(caPem).raw.toString('base64');
const literal = "'[A-Za-z0-9 .:/+=_-]+'";

/** Every line that the script may have; `%` stands for a literal. */
const shapes = [
  '#Requires -Version 5.1',
  '#Requires -RunAsAdministrator',
  "$ErrorActionPreference = 'Stop'",
  '$name = %',
  '$server = %',
  '$bundle = Join-Path -Path $PSScriptRoot -ChildPath %',
  'if (-not (Test-Path -LiteralPath $bundle)) { throw "Put the PKCS#12 file here first: $bundle" }',
  "$password = Read-Host -AsSecureString -Prompt 'Password of the PKCS#12 file'",
  "Import-PfxCertificate -FilePath $bundle -CertStoreLocation 'Cert:\\LocalMachine\\My' -Password $password | Out-Null",
  '$der = [Convert]::FromBase64String(%)',
  '$ca = [System.Security.Cryptography.X509Certificates.X509Certificate2]::new([byte[]]$der)',
  "$store = [System.Security.Cryptography.X509Certificates.X509Store]::new('Root', 'LocalMachine')",
  "$store.Open('ReadWrite')",
  '$store.Add($ca)',
  '$store.Close()',
  'if (Get-VpnConnection -Name $name -AllUserConnection -ErrorAction SilentlyContinue) { Remove-VpnConnection -Name $name -AllUserConnection -Force }',
  'Add-VpnConnection -Name $name -ServerAddress $server -TunnelType IKEv2 -AuthenticationMethod MachineCertificate -EncryptionLevel Required -AllUserConnection',
  'Set-VpnConnectionIPsecConfiguration -ConnectionName $name -AuthenticationTransformConstants SHA256128 -CipherTransformConstants AES256 -EncryptionMethod AES256 -IntegrityCheckMethod SHA256 -PfsGroup None -DHGroup Group14 -AllUserConnection -Force',
  'Set-VpnConnection -Name $name -SplitTunneling $true -AllUserConnection -Force',
  'Set-VpnConnection -Name $name -SplitTunneling $false -AllUserConnection -Force',
  'Add-VpnConnectionRoute -ConnectionName $name -DestinationPrefix % -AllUserConnection',
  'Write-Host "Done. Connect to $name in the network settings, or with: rasdial `"$name`""',
].map((shape) => new RegExp(`^${shape.replaceAll(/[$()[\]{}|.*+?^\\]/g, '\\$&').replace('%', literal)}$`));

function linesOf(script: string): string[] {
  if (!/^[\r\n -~]+$/.test(script)) throw new Error('not ASCII');
  const lines = script.split('\r\n');
  if (lines.pop() !== '' || lines.some((line) => /[\r\n]/.test(line))) throw new Error('line ends');
  return lines;
}

/** Literals of a line. Throws if quotes do not pair up. */
function literalsOf(line: string): string[] {
  const withoutStrings = line.replaceAll(/"(?:[^"`]|`.)*"/g, '""');
  const literals = [...withoutStrings.matchAll(/'([^']*)'/g)].map(([, text = '']) => text);
  if (withoutStrings.replaceAll(/'[^']*'/g, '').includes("'")) throw new Error(`open literal: ${line}`);
  return literals;
}

const scriptOf = (...given: Parameters<typeof subjectWith>): string[] => linesOf(powershell(subjectWith(...given)));

t.test('a resolver and a proxy that the routes leave out have a route of its own', (t) => {
  const text = powershell(subjectWith({}, { routes: ['192.168.7.0/24'], dns: ['10.86.0.1'] }));
  t.match(text, "-DestinationPrefix '10.86.0.1/32'");
  t.match(powershell(subjectWith({}, { routes: ['192.168.7.0/24'], proxy })), "-DestinationPrefix '10.9.9.9/32'");
  t.end();
});

t.test('a search domain is the suffix of the connection', (t) => {
  const text = powershell(subjectWith({}, { search_domains: ['corp.example', 'lan'] }));
  t.match(text, "-EncryptionLevel Required -DnsSuffix 'corp.example' -AllUserConnection");
  t.end();
});

t.test('every line is one of those that are known, in the order that works', (t) => {
  const lines = scriptOf();
  for (const line of lines)
    t.ok(
      shapes.some((shape) => shape.test(line)),
      line.slice(0, 60),
    );
  const at = (text: string): number => lines.findIndex((line) => line.startsWith(text));
  const order = [
    'Import-PfxCertificate',
    '$store.Add',
    'Add-VpnConnection',
    'Set-VpnConnectionIPsec',
    'Set-VpnConnection ',
  ];
  t.same(
    order.map(at),
    order.map(at).toSorted((one, other) => one - other),
  );
  t.ok(order.every((text) => at(text) > 0));
  t.end();
});

t.test('the values are the peer’s', (t) => {
  const literals = scriptOf().flatMap(literalsOf);
  for (const value of ['Longshore demo', 'vpn.example.com', 'phone.p12', ca]) t.ok(literals.includes(value), value);
  t.end();
});

t.test('all goes through the tunnel, or the routes do', (t) => {
  const routesOf = (lines: readonly string[]): string[] =>
    lines.filter((line) => line.startsWith('Add-VpnConnectionRoute')).flatMap(literalsOf);
  t.same(routesOf(scriptOf()), []);
  t.ok(scriptOf().some((line) => line.includes('-SplitTunneling $false')));
  const split = scriptOf({ routes: ['10.0.0.0/8', '2001:db8::/32'] });
  t.same(routesOf(split), ['10.0.0.0/8', '2001:db8::/32', 'fd00:86::1/128'], 'and the resolver in the pool');
  t.ok(split.some((line) => line.includes('-SplitTunneling $true')));
  t.same(routesOf(scriptOf({ ipv6: null, routes: ['10.0.0.0/8', '2001:db8::/32'] })), ['10.0.0.0/8']);
  t.end();
});

t.test('of a name there is a file’s name and no more', (t) => {
  const plain = scriptOf();
  for (const name of nasty) {
    const lines = scriptOf({ name });
    const expected = plain.map((line) => line.replace("'phone.p12'", `'${fileName(name, peerId, 'p12')}'`));
    t.same(lines, expected, label(name));
    t.ok(lines.every((line) => shapes.some((shape) => shape.test(line))));
  }
  t.end();
});

t.test('a text that is no host, network or name of a network is refused', (t) => {
  for (const text of breaking) {
    t.throws(() => scriptOf({}, { endpoint: `vpn.example.com${text}` }), Unfit, label(text));
    t.throws(() => scriptOf({ routes: [`10.0.0.0/8${text}`] }), Unfit);
    t.throws(() => powershell({ ...subjectWith(), network: networkWith({}, text) }), Unfit);
    t.throws(() => powershell({ ...subjectWith(), network: networkWith({}, `demo${text}`) }), Unfit);
  }
  t.end();
});
