/**
 * Decides which messages of a shared stream to remove: the oldest of each host, tenant or container
 * that has more than its fair share. Hosts share the stream LOGS, tenants share the part of their
 * host, and containers the part of their tenant on that host. So everything that a host writes, in
 * any tenant's name, counts as the host's, and cannot push out the messages of other hosts. Pure
 * (ADR 23).
 */

/** The messages of a host, a tenant or a container in a stream. */
export interface Use {
  /** Matches their subjects. */
  readonly filter: string;
  readonly messages: number;
  /** Estimated: messages × mean size in the sample. */
  readonly bytes: number;
  /** The uses that share this one; empty: it is cut as a whole. */
  readonly parts: readonly Use[];
}

/** A use whose parts have the same type. */
type Shared<Of extends Use> = Use & { readonly parts: readonly Of[] };

/** Removes the oldest messages of a use until so many bytes are left. */
export interface Cut<Of extends Use> {
  readonly use: Of;
  readonly toBytes: number;
}

/**
 * The highest level such that all fit into `targetBytes` if each is cut to at most the level. It is
 * never below the fair share (`targetBytes` / their number), so a use within its fair share is
 * never cut.
 */
function levelOf(bytes: readonly number[], targetBytes: number): number {
  let left = targetBytes;
  const ascending = [...bytes].sort((one, other) => one - other);
  for (const [index, next] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (next > share) return share;
    left -= next;
  }
  return Infinity;
}

/** Cuts those above the level down to it, largest first. */
function level<Of extends Use>(uses: readonly Of[], targetBytes: number): Cut<Of>[] {
  const toBytes = levelOf(
    uses.map(({ bytes }) => bytes),
    targetBytes,
  );
  const over = uses.filter(({ bytes }) => bytes > toBytes);
  return over.sort((one, other) => other.bytes - one.bytes).map((use) => ({ use, toBytes }));
}

/**
 * The number of messages that a cut leaves. At least 1: the server takes a purge that keeps 0 for
 * one without a limit.
 */
export const keptBy = ({ use, toBytes }: Cut<Use>): number =>
  Math.max(1, Math.min(use.messages, Math.floor((use.messages * toBytes) / use.bytes)));

const freedBy = (cut: Cut<Use>): number => cut.use.bytes * (1 - keptBy(cut) / cut.use.messages);

/**
 * Cuts parts in place of the whole, unless more than `mostCuts` of them are over their share, or
 * they are so small that one message of each is nearly all there is.
 */
export function cutsOf<Of extends Shared<Of>>(uses: readonly Of[], targetBytes: number, mostCuts: number): Cut<Of>[] {
  return level(uses, targetBytes).flatMap((cut) => {
    const { use, toBytes } = cut;
    const ofParts = cutsOf(use.parts, toBytes, mostCuts);
    const freed = ofParts.reduce((sum, each) => sum + freedBy(each), 0);
    return ofParts.length > mostCuts || freed < (use.bytes - toBytes) / 2 ? [cut] : ofParts;
  });
}

/** Scales the estimated bytes of uses so that they add up to their known sum. */
export function scaledTo<Of extends Shared<Of>>(uses: readonly Of[], bytesTogether: number): Of[] {
  const estimated = uses.reduce((sum, { bytes }) => sum + bytes, 0);
  const scale = estimated > 0 ? bytesTogether / estimated : 1;
  const scaled = (use: Of): Of => ({ ...use, bytes: use.bytes * scale, parts: use.parts.map(scaled) });
  return uses.map(scaled);
}
