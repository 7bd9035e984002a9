/** Networks: their keys, and the certificates of their authority and server, kept fresh. */
import { isDeepStrictEqual } from 'node:util';
import { limits } from '../../../../schemas/limits.ts';
import type { NetworkName } from '../../../../schemas/ids.ts';
import type { KeptCertificate, NetworkRecord, NetworkSettings } from '../../../../schemas/api/network.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import { succeeded } from '../../../call.ts';
import type { Outcome } from '../../../../lib/rpc/partition-client.ts';
import { bodyOf, type Asker, type VpnActors } from '../actors.ts';
import { authorityOf, crlUrl, networkPlace } from './authority.ts';
import type { Keyring } from '../keyring.ts';
import type { Materials } from '../materials.ts';
import { Refusal } from '../refusal.ts';
import { conflict, failure, invalid } from '../../../http/respond.ts';
import type { FieldErrors } from '../../../../schemas/errors.ts';
import { newFaults, type AskedSettings, type NetworkToMake } from '../../../validation/network.ts';
import { isRenewalDue, isTooLong } from '../renewal.ts';

export interface NetworkKeeperOptions {
  readonly actors: VpnActors;
  readonly materials: Materials;
  readonly clock: Clock;
  readonly publicUrl: () => string;
  readonly defaultNetwork: NetworkName;
}

const taken = conflict('exists', 'a network of this name exists; choose another name');

const unknown = () => new Refusal(failure('timeout'));

/** On its VPN server. */
const placeOf = ({ endpoint, wireguard_port }: NetworkSettings) => ({ endpoint, wireguard_port });

/** @throws Refusal if there is a fault */
function refuse(faults: FieldErrors): void {
  if (Object.keys(faults).length > 0) throw new Refusal(invalid(faults));
}

export class NetworkKeeper {
  readonly #options: NetworkKeeperOptions;

  constructor(options: NetworkKeeperOptions) {
    this.#options = options;
  }

  /**
   * A network whose settings name no tenants serves none; the default network then serves all.
   * @throws Refusal
   */
  async create(
    asker: Asker,
    { name: network, settings: asked, nameConstraints }: NetworkToMake,
    { vault, pool }: Keyring,
  ): Promise<Outcome> {
    const { actors, clock, publicUrl, defaultNetwork } = this.#options;
    const settings: NetworkSettings = { tenants: network === defaultNetwork ? null : [], ...asked };
    const known = await actors.ask(asker, { type: 'network.get', network });
    if (succeeded(known)) throw new Refusal(taken);
    refuse(await this.#faultsAmongOthers(asker, network, settings));
    const made = await pool.run(
      'network',
      {
        network,
        endpoint: settings.endpoint,
        crlUrl: crlUrl(publicUrl(), network),
        nameConstraints,
        nowMs: clock.nowMs(),
      },
      asker.deadlineMs,
    );
    const seal = (field: 'wireguard' | 'ca' | 'server', secret: string) =>
      vault.seal(networkPlace(network, field), secret);
    const outcome = await actors.askWrite(asker, {
      type: 'network.create',
      network,
      made: {
        settings,
        wireguard: { publicKey: made.wireguard.publicKey, privateKey: seal('wireguard', made.wireguard.privateKey) },
        ca: { ...made.ca.certificate, privateKey: seal('ca', made.ca.privateKeyPem) },
        server: { ...made.server.certificate, privateKey: seal('server', made.server.privateKeyPem) },
        ...(nameConstraints ? { nameConstraints } : {}),
      },
    });
    if (!succeeded(outcome)) return outcome;
    await this.#lookAgain(asker, { name: network, settings }, async (again) => {
      const removed = await actors.askWrite(again, { type: 'network.remove', network });
      return succeeded(removed) || removed.code === 'not_found';
    });
    return outcome;
  }

  /**
   * The server's certificate names its endpoint, so a new endpoint needs a new certificate. If the
   * body does not name tenants, the network keeps those that it has. @throws Refusal, also for what
   * an older release took and the network does not have yet
   */
  async put(asker: Asker, name: NetworkName, asked: AskedSettings, keyring: Keyring): Promise<Outcome> {
    const network = await this.load(asker, name);
    const settings: NetworkSettings = { tenants: network.settings.tenants, ...asked };
    const moved = settings.endpoint !== network.settings.endpoint;
    const isElsewhere = moved || settings.wireguard_port !== network.settings.wireguard_port;
    refuse(
      isElsewhere
        ? await this.#faultsAmongOthers(asker, name, settings, network.settings)
        : newFaults(settings, network.settings),
    );
    const server = moved ? await this.#serverCertificate(asker, { ...network, settings }, keyring) : null;
    const outcome = await this.#options.actors.askWrite(asker, {
      type: 'network.put',
      network: name,
      settings,
      server,
      ...(asked.tenants === undefined ? { keepsTenants: true } : {}),
    });
    if (!isElsewhere || !succeeded(outcome)) return outcome;
    await this.#lookAgain(asker, { name, settings, before: network.settings }, async (again) => {
      const now = await this.load(again, name);
      // Who changed it since has looked again, too.
      if (!isDeepStrictEqual(placeOf(now.settings), placeOf(settings))) return true;
      const former = { settings: network.settings, server: moved ? network.server : null };
      return succeeded(await this.#options.actors.askWrite(again, { type: 'network.put', network: name, ...former }));
    });
    return outcome;
  }

  async #faultsAmongOthers(
    asker: Asker,
    name: NetworkName,
    settings: NetworkSettings,
    before?: NetworkSettings,
  ): Promise<FieldErrors> {
    const others = await this.#options.actors.networks(asker);
    return newFaults(
      settings,
      before,
      others.filter((other) => other.name !== name),
    );
  }

  /**
   * Two requests at the same moment see nothing of each other before they write: networks are in
   * different partitions. So each looks again, and who sees another takes back what it wrote. At
   * most one of them stays. @throws Refusal
   * @param takeBack false: it is not known whether that is done
   */
  async #lookAgain(
    asker: Asker,
    { name, settings, before }: { name: NetworkName; settings: NetworkSettings; before?: NetworkSettings },
    takeBack: (asker: Asker) => Promise<boolean>,
  ): Promise<void> {
    const { origin, deadlineMs, cause } = asker;
    const again: Asker = {
      origin,
      deadlineMs,
      cause: cause && { ...cause, action: before === undefined ? 'network.remove' : cause.action },
    };
    let faults: FieldErrors;
    try {
      faults = await this.#faultsAmongOthers(again, name, settings, before);
      if (Object.keys(faults).length === 0) return;
      if (!(await takeBack(again))) throw unknown();
    } catch (error) {
      // It was written, and other refusals would say that it was not.
      throw error instanceof Refusal ? unknown() : error;
    }
    refuse(faults);
  }

  /** @throws Refusal */
  load(asker: Asker, network: NetworkName): Promise<NetworkRecord> {
    return this.#options.materials.network(asker, network);
  }

  /**
   * The network, after renewing those of its certificates that are due or too long. @throws Refusal
   */
  async fresh(asker: Asker, name: NetworkName, keyring: Keyring): Promise<NetworkRecord> {
    const nowMs = this.#options.clock.nowMs();
    let network = await this.load(asker, name);
    if (isRenewalDue(network.ca, nowMs + limits.caLifetimeMs, nowMs, limits.caLifetimeMs)) {
      network = await this.#certify(asker, network, 'ca', await this.#caCertificate(asker, network, keyring));
    }
    const serverEndsMs = Math.min(nowMs + limits.certificateLifetimeMs, network.ca.notAfterMs);
    if (isTooLong(network.server) || isRenewalDue(network.server, serverEndsMs, nowMs)) {
      network = await this.#certify(asker, network, 'server', await this.#serverCertificate(asker, network, keyring));
    }
    return network;
  }

  async #certify(
    asker: Asker,
    network: NetworkRecord,
    which: 'ca' | 'server',
    certificate: KeptCertificate,
  ): Promise<NetworkRecord> {
    const outcome = await this.#options.actors.askWrite(asker, {
      type: 'network.certify',
      network: network.name,
      which,
      replaces: network[which].serial,
      certificate,
    });
    // Another request renewed it first; its certificate serves as well.
    if (outcome.code === 'conflict') return this.load(asker, network.name);
    return bodyOf('network.certify', outcome).data;
  }

  /** A new certificate for the server's existing key. */
  async #serverCertificate(asker: Asker, network: NetworkRecord, { vault, pool }: Keyring): Promise<KeptCertificate> {
    const { name, server, settings } = network;
    const made = await pool.run(
      'server',
      {
        endpoint: settings.endpoint,
        crlUrl: crlUrl(this.#options.publicUrl(), name),
        ...authorityOf(network, vault),
        privateKeyPem: vault.open(networkPlace(name, 'server'), server.privateKey),
        nowMs: this.#options.clock.nowMs(),
      },
      asker.deadlineMs,
    );
    return { ...made.certificate, privateKey: server.privateKey };
  }

  /**
   * A new certificate for the same name and key: certificates that the authority has signed remain
   * valid, also on devices that have its old certificate.
   */
  async #caCertificate(asker: Asker, network: NetworkRecord, { vault, pool }: Keyring): Promise<KeptCertificate> {
    const { name, ca, settings } = network;
    const made = await pool.run(
      'ca',
      {
        network: name,
        privateKeyPem: vault.open(networkPlace(name, 'ca'), ca.privateKey),
        ...(network.nameConstraints === true ? { constrainedTo: settings.endpoint } : {}),
        nowMs: this.#options.clock.nowMs(),
      },
      asker.deadlineMs,
    );
    return { ...made.certificate, privateKey: ca.privateKey };
  }
}
