/** The VPN area of the gateway put together: what its handlers work with. */
import { v7 as uuidv7 } from 'uuid';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { NetworkName, PeerId, PeerTokenId } from '../../schemas/ids.ts';
import type { TenantRanges } from '../../schemas/tenant-network.ts';
import { partitionOf } from '../../schemas/wire/subjects.ts';
import type { Call, Writer } from '../call.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { OwnToken } from '../../schemas/routes.ts';
import { PkiPool } from './pki/pool.ts';
import type { Vault } from '../vault/vault.ts';
import { createVpnActors, type VpnActors } from './service/actors.ts';
import { Artifacts } from './service/artifacts.ts';
import type { Keyring } from './service/keyring.ts';
import { Materials } from './service/materials.ts';
import { createForageMeters, type ForageMeters } from './metrics.ts';
import { NetworkKeeper } from './service/networks/networks.ts';
import { PeerMaker } from './service/peers/peers.ts';
import { RevocationLists } from './service/networks/revocation-lists.ts';

export interface Forage {
  readonly actors: VpnActors;
  readonly peers: PeerMaker;
  readonly networks: NetworkKeeper;
  readonly artifacts: Artifacts;
  readonly revocationLists: RevocationLists;
  readonly meters: ForageMeters;
  /** Undefined where no keys were configured: what needs them is answered 503. */
  readonly keyring: Keyring | undefined;
  readonly publicUrl: () => string;
  /** Undefined until the cluster is known. */
  readonly tenantRanges: () => TenantRanges | undefined;
  readonly metricsToken: string | undefined;
  /** Counts a wrong token of this kind against the client. */
  readonly countAuthFailure: (call: Call, token: OwnToken) => void;
  readonly clock: Clock;
  readonly log: Log;
  stop(): Promise<void>;
}

export interface ForageOptions extends Writer {
  readonly ask: AskOwner;
  /** Undefined until the cluster is known. */
  readonly partitions: () => number | undefined;
  readonly tenantRanges: Forage['tenantRanges'];
  readonly countAuthFailure: Forage['countAuthFailure'];
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined without keys. */
  readonly vault: Vault | undefined;
  readonly publicUrl: () => string;
  readonly defaultNetwork: NetworkName;
  readonly metricsToken: string | undefined;
  readonly version: string;
}

export function createForage({ vault, publicUrl, clock, log, ...options }: ForageOptions): Forage {
  const actors = createVpnActors(options);
  const materials = new Materials(actors);
  const networks = new NetworkKeeper({ actors, materials, clock, publicUrl, defaultNetwork: options.defaultNetwork });
  const meters = createForageMeters(options.version, () => clock.monotonicMs() / 1000);
  const keyring = vault === undefined ? undefined : { vault, pool: new PkiPool({ log }) };
  return {
    actors,
    networks,
    peers: new PeerMaker({
      actors,
      materials,
      clock,
      publicUrl,
      defaultNetwork: options.defaultNetwork,
      newPeerId: () => uuidv7() as PeerId,
      newTokenId: () => uuidv7() as PeerTokenId,
      partitionOf: (tenant) => partitionOf(tenant, actors.partitions().length),
    }),
    artifacts: new Artifacts(meters.timed),
    revocationLists: new RevocationLists(actors, networks, clock),
    meters,
    keyring,
    publicUrl,
    tenantRanges: options.tenantRanges,
    metricsToken: options.metricsToken,
    countAuthFailure: options.countAuthFailure,
    clock,
    log,
    stop: async () => keyring?.pool.stop(),
  };
}
