/**
 * The values that a user types on each platform that has no file of ours, named as in that
 * platform's form.
 */
import { fileName } from '../filename.ts';
import { linksOf } from '../links.ts';
import { espTexts, ikeTexts } from '../../../../schemas/ike-proposals.ts';
import {
  dnsOf,
  endpointOf,
  isFullTunnel,
  localIdOf,
  searchDomainsOf,
  shownName,
  usableRoutes,
  type Subject,
} from '../subject.ts';

/** The name of a connection that a script makes: safe characters only. */
export const connectionName = (network: string): string => `Longshore ${network}`;

export interface Platforms {
  readonly apple: {
    readonly type: 'IKEv2';
    readonly description: string;
    readonly server: string;
    readonly remote_id: string;
    readonly local_id: string;
    readonly user_authentication: 'None';
    readonly use_certificate: true;
    readonly certificate: string;
    readonly mobileconfig_url: string;
    readonly p12_url: string;
  };
  readonly windows: {
    readonly vpn_provider: 'Windows (built-in)';
    readonly connection_name: string;
    readonly server: string;
    readonly vpn_type: 'IKEv2';
    readonly sign_in: 'Certificate';
    readonly certificate_store: 'LocalMachine\\My';
    readonly ca_store: 'LocalMachine\\Root';
    readonly split_tunneling: boolean;
    /** Runs the script, which a fresh Windows refuses otherwise; as administrator. */
    readonly command: string;
    readonly ps1_url: string;
    readonly p12_url: string;
  };
  readonly android_native: {
    readonly name: string;
    readonly type: 'IKEv2/IPSec RSA';
    readonly server: string;
    readonly ipsec_identifier: string;
    readonly ipsec_user_certificate: string;
    readonly ipsec_ca_certificate: string;
    readonly ipsec_server_certificate: 'Received from server';
    readonly dns_servers: string;
    readonly dns_search_domains: string;
    readonly forwarding_routes: string;
    readonly p12_url: string;
  };
  readonly android_strongswan: {
    readonly profile_name: string;
    readonly server: string;
    readonly vpn_type: 'IKEv2 Certificate';
    readonly server_identity: string;
    readonly client_identity: string;
    readonly sswan_url: string;
    readonly p12_url: string;
  };
  readonly networkmanager: {
    readonly plugin: 'strongSwan';
    readonly name: string;
    readonly gateway_address: string;
    readonly gateway_identity: string;
    readonly authentication: 'Certificate/private key';
    readonly client_identity: string;
    readonly request_inner_ip: true;
    /** Without it the plugin does not read the proposals. */
    readonly enable_custom_algorithm_proposals: true;
    /** Separated by `;`, as the plugin reads them. */
    readonly ike_proposal: string;
    readonly esp_proposal: string;
    readonly p12_url: string;
  };
  readonly strongswan: {
    readonly remote_addrs: string;
    readonly local_id: string;
    readonly remote_id: string;
    readonly remote_ts: string;
    readonly p12_file: string;
    readonly swanctl_url: string;
    readonly p12_url: string;
  };
}

export function platformsOf(subject: Subject, caName: string): Platforms {
  const { peer, network } = subject;
  const links = linksOf(subject);
  const server = endpointOf(network);
  const localId = localIdOf(peer.localId);
  const name = shownName(peer);
  const full = isFullTunnel(subject);
  return {
    apple: {
      type: 'IKEv2',
      description: name,
      server,
      remote_id: server,
      local_id: localId,
      user_authentication: 'None',
      use_certificate: true,
      certificate: localId,
      mobileconfig_url: links.mobileconfig,
      p12_url: links.p12,
    },
    windows: {
      vpn_provider: 'Windows (built-in)',
      connection_name: connectionName(network.name),
      server,
      vpn_type: 'IKEv2',
      sign_in: 'Certificate',
      certificate_store: 'LocalMachine\\My',
      ca_store: 'LocalMachine\\Root',
      split_tunneling: !full,
      command: `powershell -ExecutionPolicy Bypass -File ${fileName(peer.name, peer.id, 'ps1')}`,
      ps1_url: links.ps1,
      p12_url: links.p12,
    },
    android_native: {
      name,
      type: 'IKEv2/IPSec RSA',
      server,
      ipsec_identifier: localId,
      ipsec_user_certificate: localId,
      ipsec_ca_certificate: caName,
      ipsec_server_certificate: 'Received from server',
      dns_servers: dnsOf(subject).join(' '),
      dns_search_domains: searchDomainsOf(subject).join(' '),
      forwarding_routes: full ? '' : usableRoutes(subject).join(' '),
      p12_url: links.p12,
    },
    android_strongswan: {
      profile_name: name,
      server,
      vpn_type: 'IKEv2 Certificate',
      server_identity: server,
      client_identity: localId,
      sswan_url: links.sswan,
      p12_url: links.p12,
    },
    networkmanager: {
      plugin: 'strongSwan',
      name,
      gateway_address: server,
      gateway_identity: server,
      authentication: 'Certificate/private key',
      client_identity: localId,
      request_inner_ip: true,
      enable_custom_algorithm_proposals: true,
      ike_proposal: ikeTexts(';'),
      esp_proposal: espTexts(';'),
      p12_url: links.p12,
    },
    strongswan: {
      remote_addrs: server,
      local_id: localId,
      remote_id: server,
      remote_ts: usableRoutes(subject).join(', '),
      p12_file: `/etc/swanctl/pkcs12/${fileName(peer.name, peer.id, 'p12')}`,
      swanctl_url: links.swanctl,
      p12_url: links.p12,
    },
  };
}
