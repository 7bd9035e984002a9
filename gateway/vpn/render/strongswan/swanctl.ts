/**
 * strongSwan's configurations (swanctl.conf; 5.7 or newer, for references to sections): the VPN
 * server's and that of a Linux machine. Section names are ours or UUIDs. Values are hosts, networks
 * and numbers, without the characters that end a value (`#`, `}`, `"`, line ends).
 */
import type { NetworkRecord } from '../../../../schemas/api/network.ts';
import { fileName } from '../filename.ts';
import { fitAddress, fitNetworkName, Unfit } from '../fit.ts';
import { espTexts, ikeTexts } from '../../../../schemas/ike-proposals.ts';
import { tunnelRoutes } from '../ranges.ts';
import { endpointOf, inFamilies, localIdOf, usableRoutes, type Subject } from '../subject.ts';

export interface SwanctlPeer {
  readonly localId: string;
  readonly ipv4: string;
  readonly ipv6: string | null;
}

/** Stands for the bundle's password, which the server does not put into files. */
export const passwordPlaceholder = 'PUT THE PASSWORD OF THE BUNDLE HERE';

type Setting = readonly [key: string, value: string];

interface Section {
  readonly name: string;
  readonly like?: string;
  readonly settings?: readonly Setting[];
  readonly sections?: readonly Section[];
}

function setting([key, value]: Setting): string {
  if (!/^[A-Za-z0-9.:/%_, =-]+$/.test(value)) throw new Unfit(key);
  // No character of this alphabet ends or escapes a quoted string.
  return `${key} = ${/[ =]/.test(value) ? `"${value}"` : value}`;
}

function textOf({ name, like, settings = [], sections = [] }: Section, indent = ''): string {
  const inner = `${indent}  `;
  const head = `${indent}${name}${like === undefined ? '' : ` : ${like}`} {\n`;
  const lines = settings.map((item) => `${inner}${setting(item)}\n`);
  return [head, ...lines, ...sections.map((section) => textOf(section, inner)), `${indent}}\n`].join('');
}

/** Longer than the clients' hour, because Windows behind a NAT refuses a rekeying by the server. */
const serverRekey = { ike: '10h', child: '2h' } as const;

/**
 * The common part of a network's connections. Its name contains the network, because one server may
 * serve several.
 */
const baseName = ({ name }: NetworkRecord): string => `longshore-${fitNetworkName(name)}`;

/** The routes that devices have through the server. */
function localRoutes({ settings }: NetworkRecord): readonly string[] {
  const hasIpv6 = settings.ipv6_pool !== null;
  return inFamilies(tunnelRoutes(settings, settings.routes, settings.dns, hasIpv6), hasIpv6);
}

function serverBase(network: NetworkRecord): Section {
  const name = fitNetworkName(network.name);
  return {
    name: baseName(network),
    settings: [
      ['version', '2'],
      ['proposals', ikeTexts()],
      ['unique', 'replace'],
      ['send_cert', 'always'],
      ['fragmentation', 'yes'],
      ['mobike', 'yes'],
      ['dpd_delay', '60s'],
      ['rekey_time', serverRekey.ike],
    ],
    sections: [
      {
        name: 'local',
        settings: [
          ['auth', 'pubkey'],
          ['certs', `${name}.pem`],
          ['id', endpointOf(network)],
        ],
      },
      {
        name: 'remote',
        settings: [
          ['auth', 'pubkey'],
          ['cacerts', `${name}-ca.pem`],
          ['revocation', 'strict'],
        ],
      },
      {
        name: 'children',
        sections: [
          {
            name: 'net',
            settings: [
              ['local_ts', localRoutes(network).join(', ')],
              ['esp_proposals', espTexts()],
              ['dpd_action', 'clear'],
              ['rekey_time', serverRekey.child],
            ],
          },
        ],
      },
    ],
  };
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

/** Unique, and without dots, which would split the name into sections. */
function sectionName(localId: string): string {
  const [id] = uuid.exec(localId) ?? [];
  if (id === undefined) throw new Unfit('local id');
  return `peer-${id}`;
}

/**
 * One pool per address: strongSwan gives the addresses of a larger pool to peers in the order they
 * connect.
 */
function poolsOf({ localId, ipv4, ipv6 }: SwanctlPeer): readonly { name: string; address: string }[] {
  const name = sectionName(localId);
  return [
    { name: `${name}-ipv4`, address: fitAddress(ipv4) },
    ...(ipv6 === null ? [] : [{ name: `${name}-ipv6`, address: fitAddress(ipv6) }]),
  ];
}

function connectionsOf(like: string, peer: SwanctlPeer): readonly Section[] {
  const name = sectionName(peer.localId);
  const localId = localIdOf(peer.localId);
  const pools = poolsOf(peer)
    .map((pool) => pool.name)
    .join(', ');
  return [
    {
      name,
      like,
      settings: [['pools', pools]],
      sections: [{ name: 'remote', settings: [['id', localId]] }],
    },
    // Windows identifies itself by its certificate's subject.
    {
      name: `${name}-dn`,
      like,
      settings: [['pools', pools]],
      sections: [{ name: 'remote', settings: [['id', `CN=${localId}`]] }],
    },
  ];
}

const attributesOf = (address: string, dns: string): readonly Setting[] => [
  ['addrs', `${address}-${address}`],
  ...(dns === '' ? [] : [['dns', dns] as const]),
];

/**
 * The VPN server's file. Beside it lie `x509/<network>.pem`, its key under `private/` and
 * `x509ca/<network>-ca.pem`. A peer is admitted with a certificate of the authority for its name,
 * unless the revocation list has it; without a list no peer is admitted.
 */
export function serverSwanctl(network: NetworkRecord, peers: readonly SwanctlPeer[]): string {
  const dns = network.settings.dns.map(fitAddress).join(', ');
  const pools = peers.flatMap((peer) =>
    poolsOf(peer).map(({ name, address }, at) => ({
      name,
      // Attributes come with a pool's address, so one pool of a peer has them.
      settings: attributesOf(address, at > 0 ? '' : dns),
    })),
  );
  return [
    serverBase(network),
    { name: 'connections', sections: peers.flatMap((peer) => connectionsOf(baseName(network), peer)) },
    { name: 'pools', sections: pools },
  ]
    .map((section) => textOf(section))
    .join('\n');
}

/** For strongSwan on Linux, with the bundle under `pkcs12/`; the user inserts the password. */
export function clientSwanctl(subject: Subject): string {
  const { peer, network } = subject;
  const server = endpointOf(network);
  const name = fitNetworkName(network.name);
  const connection: Section = {
    name,
    settings: [
      ['version', '2'],
      ['remote_addrs', server],
      ['vips', peer.ipv6 === null ? '0.0.0.0' : '0.0.0.0, ::'],
      ['proposals', ikeTexts()],
      ['fragmentation', 'yes'],
      ['dpd_delay', '60s'],
    ],
    sections: [
      {
        name: 'local',
        settings: [
          ['auth', 'pubkey'],
          ['id', localIdOf(peer.localId)],
        ],
      },
      {
        name: 'remote',
        settings: [
          ['auth', 'pubkey'],
          ['id', server],
        ],
      },
      {
        name: 'children',
        sections: [
          {
            name: 'home',
            settings: [
              ['remote_ts', usableRoutes(subject).join(', ')],
              ['esp_proposals', espTexts()],
              ['dpd_action', 'restart'],
            ],
          },
        ],
      },
    ],
  };
  const secret: Section = {
    name: `pkcs12-${name}`,
    settings: [
      ['file', fileName(peer.name, peer.id, 'p12')],
      ['secret', passwordPlaceholder],
    ],
  };
  return [
    { name: 'connections', sections: [connection] },
    { name: 'secrets', sections: [secret] },
  ]
    .map((section) => textOf(section))
    .join('\n');
}
