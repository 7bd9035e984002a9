/**
 * A script for Windows: it imports the bundle that lies beside it and sets up a connection with a
 * machine certificate. Set-VpnConnectionIPsecConfiguration is needed because Windows proposes a
 * 1024-bit group by default. PowerShell reads typographic quotes as quotes. So the only user input
 * is the file name, which keeps letters, digits, `-` and `_`, and every text in quotes passes
 * `quoted` again. ASCII only, CRLF.
 */
import { fileName } from './filename.ts';
import { fitBase64, fitNetworkName, Unfit } from './fit.ts';
import { connectionName } from './profile/platforms.ts';
import { caOf, endpointOf, isFullTunnel, searchDomainsOf, usableRoutes, type Subject } from './subject.ts';

/**
 * A literal in single quotes: PowerShell expands nothing there, and no allowed character ends it.
 */
function quoted(text: string): string {
  if (!/^[A-Za-z0-9 .:/+=_-]+$/.test(text)) throw new Unfit('PowerShell literal');
  return `'${text}'`;
}

export function powershell(subject: Subject): string {
  const { peer, network } = subject;
  const full = isFullTunnel(subject);
  const routes = full ? [] : usableRoutes(subject);
  // Windows takes one.
  const [suffix] = searchDomainsOf(subject);
  const ca = fitBase64(Buffer.from(caOf(network).der).toString('base64'));
  const lines = [
    '#Requires -Version 5.1',
    '#Requires -RunAsAdministrator',
    "$ErrorActionPreference = 'Stop'",
    `$name = ${quoted(connectionName(fitNetworkName(network.name)))}`,
    `$server = ${quoted(endpointOf(network))}`,
    `$bundle = Join-Path -Path $PSScriptRoot -ChildPath ${quoted(fileName(peer.name, peer.id, 'p12'))}`,
    'if (-not (Test-Path -LiteralPath $bundle)) { throw "Put the PKCS#12 file here first: $bundle" }',
    "$password = Read-Host -AsSecureString -Prompt 'Password of the PKCS#12 file'",
    "Import-PfxCertificate -FilePath $bundle -CertStoreLocation 'Cert:\\LocalMachine\\My' -Password $password | Out-Null",
    `$der = [Convert]::FromBase64String(${quoted(ca)})`,
    '$ca = [System.Security.Cryptography.X509Certificates.X509Certificate2]::new([byte[]]$der)',
    "$store = [System.Security.Cryptography.X509Certificates.X509Store]::new('Root', 'LocalMachine')",
    "$store.Open('ReadWrite')",
    '$store.Add($ca)',
    '$store.Close()',
    'if (Get-VpnConnection -Name $name -AllUserConnection -ErrorAction SilentlyContinue) { ' +
      'Remove-VpnConnection -Name $name -AllUserConnection -Force }',
    'Add-VpnConnection -Name $name -ServerAddress $server -TunnelType IKEv2 ' +
      `-AuthenticationMethod MachineCertificate -EncryptionLevel Required${suffix === undefined ? '' : ` -DnsSuffix ${quoted(suffix)}`} -AllUserConnection`,
    'Set-VpnConnectionIPsecConfiguration -ConnectionName $name -AuthenticationTransformConstants SHA256128 ' +
      '-CipherTransformConstants AES256 -EncryptionMethod AES256 -IntegrityCheckMethod SHA256 -PfsGroup None ' +
      '-DHGroup Group14 -AllUserConnection -Force',
    `Set-VpnConnection -Name $name -SplitTunneling ${full ? '$false' : '$true'} -AllUserConnection -Force`,
    ...routes.map(
      (route) => `Add-VpnConnectionRoute -ConnectionName $name -DestinationPrefix ${quoted(route)} -AllUserConnection`,
    ),
    'Write-Host "Done. Connect to $name in the network settings, or with: rasdial `"$name`""',
  ];
  return lines.map((line) => `${line}\r\n`).join('');
}
