/**
 * The traffic of devices by IKEv2, added up by peer: strongSwan counts each association by itself,
 * and a device gets another one every two hours. It is kept on disk with how far each association
 * is counted, so that each byte is counted once over restarts of this program.
 */
import { readFileSync } from 'node:fs';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { nullable } from '../../schemas/api/nullable.ts';
import type { ServedPeers } from '../../schemas/wire/net.ts';
import type { IkeSeen } from './charon.ts';

const Bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Counted = Type.Object({ rx: Bytes, tx: Bytes });
const Kept = Type.Object({
  /** By network: the interface of WireGuard that these counters add to, and its peers by key. */
  networks: Type.Record(
    Type.String(),
    Type.Object({
      link: Type.String(),
      peers: Type.Record(
        Type.String(),
        Type.Object({ ...Counted.properties, handshake: Bytes, endpoint: nullable(Type.String()) }),
      ),
    }),
  ),
  /** By association. */
  children: Type.Record(Type.String(), Counted),
});
type Kept = Static<typeof Kept>;
const decodeKept = decoder(Kept);

export class IkeTraffic {
  readonly #file: string;
  #kept: Kept;
  #stored = '';

  constructor(file: string, log: Log) {
    this.#file = file;
    try {
      this.#kept = decodeKept(readFileSync(file));
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (!isAbsent) log.warn('ike_traffic_damaged', { file, error });
      this.#kept = { networks: {}, children: {} };
    }
  }

  /** @param isAll others have ended */
  note(seen: readonly IkeSeen[], isAll: boolean): void {
    const { networks, children } = this.#kept;
    for (const { owner, child, rx, tx, handshake, endpoint } of seen) {
      const before = children[child] ?? { rx: 0, tx: 0 };
      children[child] = { rx: Math.max(rx, before.rx), tx: Math.max(tx, before.tx) };
      const { peers } = (networks[owner.network] ??= { link: '', peers: {} });
      const peer = peers[owner.key];
      peers[owner.key] = {
        rx: (peer?.rx ?? 0) + Math.max(0, rx - before.rx),
        tx: (peer?.tx ?? 0) + Math.max(0, tx - before.tx),
        handshake: Math.max(peer?.handshake ?? 0, handshake),
        endpoint: endpoint ?? peer?.endpoint ?? null,
      };
    }
    if (!isAll) return;
    const there = new Set(seen.map(({ child }) => child));
    for (const child of Object.keys(children)) if (!there.has(child)) delete children[child];
  }

  /** Of a peer that is taken out nothing is left, as of its counters of WireGuard. */
  keep(vpn: readonly { readonly name: string; readonly peers: readonly { readonly key: string }[] }[]): void {
    const wanted = new Map(vpn.map(({ name, peers }) => [name, new Set(peers.map(({ key }) => key))]));
    for (const [name, { peers }] of Object.entries(this.#kept.networks)) {
      const keys = wanted.get(name);
      if (keys === undefined) delete this.#kept.networks[name];
      else for (const key of Object.keys(peers)) if (!keys.has(key)) delete peers[key];
    }
  }

  /** The counters of an interface of WireGuard with what has come beside it. */
  addTo(network: string, { link, peers }: ServedPeers[string]): ServedPeers[string] {
    const own = this.#kept.networks[network];
    if (own === undefined) return { link, peers };
    // The counters of another interface begin at 0, and so do these.
    if (own.link !== link) {
      const isFirst = own.link === '';
      own.link = link;
      for (const peer of Object.values(own.peers)) if (!isFirst) Object.assign(peer, { rx: 0, tx: 0 });
    }
    return {
      link,
      peers: peers.map((peer) => {
        const ike = own.peers[peer.key];
        if (ike === undefined) return peer;
        const isNewer = ike.handshake > peer.handshake;
        return {
          key: peer.key,
          handshake: Math.max(ike.handshake, peer.handshake),
          rx_bytes: peer.rx_bytes + ike.rx,
          tx_bytes: peer.tx_bytes + ike.tx,
          endpoint: isNewer ? ike.endpoint : peer.endpoint,
        };
      }),
    };
  }

  /** Before anybody hears of it: who counts on from a sum must find it again. */
  store(): void {
    const text = JSON.stringify(this.#kept);
    if (text === this.#stored) return;
    writePrivateFile(this.#file, text);
    this.#stored = text;
  }
}
