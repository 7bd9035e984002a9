/**
 * Which messages of a shared stream are removed: the oldest of who has more than a fair share.
 * Hosts share the stream LOGS, tenants share what their host has there, containers what their
 * tenant has on that host. So whatever a host writes, in whose name ever, counts as the host's, and
 * cannot push out what other hosts wrote. Decides only (ADR 23).
 */

/** What a host, a tenant or a container has in a stream. */
export interface Use {
  /** The subjects of it. */
  readonly filter: string;
  readonly messages: number;
  /** Estimated: messages × the mean size of those that were sampled. */
  readonly bytes: number;
  /** Those who share it; none: it is cut as a whole. */
  readonly parts: readonly Use[];
}

/** A use whose parts say as much as it does. */
type Shared<Of extends Use> = Use & { readonly parts: readonly Of[] };

/** Down to so many bytes, by age. */
export interface Cut<Of extends Use> {
  readonly use: Of;
  readonly toBytes: number;
}

/**
 * The highest level at which all fit together, when each has at most this many bytes. It is never
 * below the fair share (`targetBytes` / their number), so one within its fair share is never above
 * the level.
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

/** Those above the level at which all fit, largest first, are cut down to it. */
function level<Of extends Use>(uses: readonly Of[], targetBytes: number): Cut<Of>[] {
  const toBytes = levelOf(
    uses.map(({ bytes }) => bytes),
    targetBytes,
  );
  const over = uses.filter(({ bytes }) => bytes > toBytes);
  return over.sort((one, other) => other.bytes - one.bytes).map((use) => ({ use, toBytes }));
}

/**
 * How many messages that leaves. At least 1: for the server, a purge that keeps 0 is one without a
 * limit.
 */
export const keptBy = ({ use, toBytes }: Cut<Use>): number =>
  Math.max(1, Math.min(use.messages, Math.floor((use.messages * toBytes) / use.bytes)));

const freedBy = (cut: Cut<Use>): number => cut.use.bytes * (1 - keptBy(cut) / cut.use.messages);

/**
 * Parts are cut in place of the whole, unless more than `mostCuts` of them are over their share, or
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

/** The bytes of uses are estimates; what they are together is known. */
export function scaledTo<Of extends Shared<Of>>(uses: readonly Of[], bytesTogether: number): Of[] {
  const estimated = uses.reduce((sum, { bytes }) => sum + bytes, 0);
  const scale = estimated > 0 ? bytesTogether / estimated : 1;
  const scaled = (use: Of): Of => ({ ...use, bytes: use.bytes * scale, parts: use.parts.map(scaled) });
  return uses.map(scaled);
}
