/**
 * A thief has the key of a VPN network's authority, which devices trust, and signs certificates for
 * foreign names. If the network was made with name constraints, these certificates are refused, but
 * those that the network needs are accepted.
 */
import t from 'tap';
import { newSerial } from '../../../gateway/vpn/pki/secrets.ts';
import { domainOfPeers, issueCa, issueClient, issueServer, publicKeyPemOf } from '../../../gateway/vpn/pki/x509.ts';
import { aroundNow, crlUrl, fileWriter, newRsaPem } from '../../gateway/vpn/pki/support.ts';
import { openssl } from '../../integration/gateway/vpn/openssl.ts';
import { skipWithoutTools } from '../../support/tools.ts';

t.setTimeout(60_000);

const network = 'office';
const [caKeyPem, otherKeyPem] = [newRsaPem(), newRsaPem()];
const publicKeyPem = publicKeyPemOf(otherKeyPem);
const peer = `01920a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5b.${domainOfPeers(network)}`;

const networks = [
  {
    endpoint: 'vpn.example.com',
    strangers: ['bank.example', 'example.com', 'xvpn.example.com', '192.0.2.7', '2001:db8::7'],
  },
  { endpoint: '192.0.2.7', strangers: ['bank.example', '192.0.2.8', '2001:db8::7'] },
  { endpoint: '2001:db8::7', strangers: ['bank.example', '192.0.2.7', '2001:db8::8'] },
];

t.test(
  'an authority can certify only its own server and peers',
  { skip: await skipWithoutTools('openssl') },
  async (t) => {
    const ssl = await openssl();
    const write = fileWriter(t);
    for (const { endpoint, strangers } of networks) {
      await t.test(endpoint, async (t) => {
        const common = { ...aroundNow(), serial: newSerial() };
        const constrained = issueCa({ network, privateKeyPem: caKeyPem, constrainedTo: endpoint, ...common });
        const free = issueCa({ network, privateKeyPem: caKeyPem, ...common });
        const signing = { ...common, publicKeyPem, caKeyPem, caPem: constrained, crlUrl };
        const verify = (caPem: string, pem: string) =>
          ssl('verify', '-x509_strict', '-CAfile', write('ca.pem', caPem), write('one.pem', pem));
        const server = (name: string): string => issueServer({ ...signing, endpoint: name });
        const client = (localId: string): string => issueClient({ ...signing, localId });

        const text = ssl('x509', '-in', write('ca.pem', constrained), '-noout', '-ext', 'nameConstraints').stdout;
        t.match(text, 'X509v3 Name Constraints: critical');
        for (const [what, pem] of [
          ['its server', server(endpoint)],
          ['a peer', client(peer)],
        ] as const) {
          const { ok, stderr } = verify(constrained, pem);
          t.ok(ok, `${what} ${stderr}`);
        }
        for (const [what, pem] of [
          ...strangers.map((name) => [name, server(name)] as const),
          ['a peer of another network', client(peer.replace(network, 'lab'))] as const,
          ['a name as a peer', client('bank.example')] as const,
        ]) {
          const { ok, stderr } = verify(constrained, pem);
          t.notOk(ok, what);
          t.match(stderr, /permitted subtree violation|excluded subtree violation/, what);
          t.ok(verify(free, pem).ok, `${what}: an authority without constraints could`);
        }
      });
    }
  },
);
