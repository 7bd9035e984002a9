/**
 * Downloads: the files of one peer, for its tenant or with a token in the URL; and public files.
 */
import { isBearerOf } from '../../lib/bearer.ts';
import type { PeerId } from '../../schemas/ids.ts';
import { servesTenant } from '../../schemas/api/network.ts';
import { peerStateOf } from '../../schemas/api/peer.ts';
import { tenantOf, type Call, type CallOf, type Handled, type HandlerOf } from '../call.ts';
import type { Encryption } from './service/artifacts.ts';
import { conditional } from '../http/conditional.ts';
import type { Forage } from './vpn.ts';
import { keyringOf, type Keyring } from './service/keyring.ts';
import type { Material, PeerAccess } from './service/materials.ts';
import { Refusal, refusing } from './service/refusal.ts';
import { conflict, failure, type Result } from '../http/respond.ts';
import { attachment, fileName } from './render/filename.ts';
import { mobileconfig } from './render/apple/mobileconfig.ts';
import { pac } from './render/pac.ts';
import { powershell } from './render/powershell.ts';
import { sswan } from './render/strongswan/sswan.ts';
import type { Subject } from './render/subject.ts';
import { joined } from './render/tenant-network.ts';
import { clientSwanctl } from './render/strongswan/swanctl.ts';

/** Routes of the files that are one peer's. */
type FileOfPeer = 'artifact.config' | 'artifact.qr' | 'artifact.profile' | 'artifact.p12';

/** No referrer: the URL may hold a token. */
const common = ['referrer-policy', 'no-referrer', 'x-content-type-options', 'nosniff'];

const file = (body: string | Uint8Array, type: string, ...headers: string[]): Result => ({
  code: 'ok',
  body,
  headers: ['content-type', type, ...headers, ...common],
});

const named = ({ peer }: Subject, extension: string): string[] => [
  'content-disposition',
  attachment(fileName(peer.name, peer.id, extension)),
];

/** The token of the request is checked again with the peer: it may have ended since admission. */
const accessOf = (call: Call, peer: PeerId): PeerAccess => ({
  tenant: tenantOf(call),
  peer,
  ...(call.grant === undefined ? {} : { tokenHash: call.grant.tokenHash }),
});

/** @throws Refusal if the operator has taken the tenant off the network's list. */
function refuseClosed({ grant }: Call, { peer, network }: Material): void {
  if (servesTenant(network.settings, peer.tenant)) return;
  throw new Refusal(
    grant === undefined
      ? conflict('disabled', 'the network of this peer does not serve this tenant; ask the operator to add it')
      : failure('unauthenticated'),
  );
}

export function artifactRoutes(forage: Forage) {
  const { actors, peers, artifacts, revocationLists, meters, log, keyring } = forage;

  /** The peer of the path. @throws Refusal if the caller may not have its files. */
  async function subjectOf(call: CallOf<FileOfPeer>, keys: Keyring, needs: 'keys' | 'certificate'): Promise<Subject> {
    const peer = call.params.peer;
    // For the token of one peer no other peer exists.
    if (call.grant !== undefined && call.grant.peer !== peer) throw new Refusal(failure('not_found'));
    const access = accessOf(call, peer);
    const loaded = await peers.load(call, access);
    refuseClosed(call, loaded);
    const peerState = peerStateOf(loaded.peer, forage.clock.nowMs());
    if (peerState !== 'active')
      throw new Refusal(
        conflict('disabled', `the peer is ${peerState}; enable it, or set a later expires_at, and download again`),
      );
    const material = needs === 'certificate' ? await peers.fresh(call, access, loaded, keys) : loaded;
    const subject = { ...material, baseUrl: forage.publicUrl() };
    const ranges = forage.tenantRanges();
    return ranges === undefined ? subject : joined(subject, ranges);
  }

  const download = <R extends FileOfPeer>(
    artifact: string,
    needs: 'keys' | 'certificate',
    formatOf: (call: CallOf<R>) => string,
    make: (call: CallOf<R>, subject: Subject, keys: Keyring) => Promise<Result> | Result,
  ): HandlerOf<R> => {
    const handler = refusing<R>(log, async (call) => {
      const keys = keyringOf(keyring);
      return make(call, await subjectOf(call, keys, needs), keys);
    });
    return async (call) => counted(artifact, formatOf(call), await handler(call));
  };

  function counted(artifact: string, format: string, handled: Handled): Handled {
    if (handled !== 'streamed') meters.request(artifact, format, handled.code);
    return handled;
  }

  const config = download<'artifact.config'>(
    'config',
    'keys',
    () => 'conf',
    ({ query }, subject, keys) =>
      file(artifacts.conf(subject, keys, query.ipv6), 'text/plain; charset=utf-8', ...named(subject, 'conf')),
  );

  const qr = download<'artifact.qr'>(
    'qr',
    'keys',
    () => 'svg',
    async (call, subject, keys) => file(await artifacts.qr(call, subject, keys, call.query.ipv6), 'image/svg+xml'),
  );

  const formatOf = ({ query }: CallOf<'artifact.profile'>) => query.format;

  const profile = download('profile', 'certificate', formatOf, async (call, subject, keys) => {
    const format = formatOf(call);
    switch (format) {
      case 'json':
        return { code: 'ok', body: artifacts.profile(subject), headers: common };
      case 'mobileconfig':
        return file(
          mobileconfig(subject, await artifacts.bundle(call, subject, 'compat', keys)),
          'application/x-apple-aspen-config',
          ...named(subject, 'mobileconfig'),
        );
      case 'sswan':
        return file(
          sswan(subject, await artifacts.bundle(call, subject, 'compat', keys)),
          'application/vnd.strongswan.profile',
          ...named(subject, 'sswan'),
        );
      case 'ps1':
        return file(powershell(subject), 'text/plain; charset=utf-8', ...named(subject, 'ps1'));
      case 'swanctl':
        return file(clientSwanctl(subject), 'text/plain; charset=utf-8', ...named(subject, 'conf'));
    }
  });

  const encryptionOf = ({ query }: CallOf<'artifact.p12'>): Encryption => query.encryption;

  const p12 = download('p12', 'certificate', encryptionOf, async (call, subject, keys) =>
    file(
      await artifacts.bundle(call, subject, encryptionOf(call), keys),
      'application/x-pkcs12',
      ...named(subject, 'p12'),
    ),
  );

  const proxyConfig = refusing<'artifact.pac'>(log, async (call) => {
    const { grant } = call;
    if (grant === undefined) return failure('unauthenticated');
    const material = await peers.load(call, accessOf(call, grant.peer));
    refuseClosed(call, material);
    return conditional(call, pac(material.network), {
      whole: ['content-type', 'application/x-ns-proxy-autoconfig'],
      always: ['cache-control', 'private, max-age=300', ...common],
    });
  });

  const crl = refusing<'crl'>(log, async (call) =>
    file(await revocationLists.of(call, call.params.network, keyringOf(keyring)), 'application/pkix-crl'),
  );

  const metrics: HandlerOf<'forage.metrics'> = async (call) => {
    if (!mayScrape(call)) return failure('unauthenticated');
    return file(await meters.scrape(call, actors), meters.registry.contentType);
  };

  function mayScrape(call: Call): boolean {
    const { metricsToken } = forage;
    if (metricsToken === undefined) return true;
    if (isBearerOf([metricsToken], call.exchange.head.headers.authorization)) return true;
    forage.countAuthFailure(call, 'metrics token');
    return false;
  }

  return {
    'artifact.config': config,
    'artifact.qr': qr,
    'artifact.profile': profile,
    'artifact.p12': p12,
    'artifact.pac': (async (call) =>
      counted('pac', 'pac', await proxyConfig(call))) satisfies HandlerOf<'artifact.pac'>,
    crl,
    'forage.metrics': metrics,
  };
}
