/** Takes a report, in which a host reports its containers. */
import type { HostKey } from '../../../schemas/ids.ts';
import type { PullItem, Report, ReportAnswer, ReportItem } from '../../../schemas/wire/host.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';
import { isAhead, observe, observePull } from '../../domain/container/observe.ts';
import { highestSession } from '../../domain/host/sender.ts';
import type { PartitionView } from '../../domain/state.ts';
import type { Changes, TurnContext } from '../../domain/turn.ts';
import type { Partition } from '../../partition.ts';
import { countRefused, isFromEnrolled, isHomeOf, ownedPartition, type HostServerOptions } from './server.ts';

/** Containers of a report that one turn processes. */
export const reportItemsPerTurn = 10;

/** The refusal of a report; `undefined` if it is accepted. */
function refusalOf(
  options: HostServerOptions,
  partition: Partition,
  sender: Sender,
  { session }: Report,
): ReportRefusal | undefined {
  const { fleet, clock } = options;
  const { host } = sender;
  // A fenced host changes nothing (invariant A7).
  if (fleet.condition(host) === 'fenced') return 'unavailable';
  // Without the host's directory entry, a new owner cannot tell which sessions are over.
  if (!fleet.isSynced(host)) return 'unavailable';
  if (!isFromEnrolled(options, partition, sender)) {
    countRefused(options, 'report', sender);
    // The owner of the host's partition knows for sure, and makes the agent say hello. Another
    // owner may not have learnt the key yet.
    return isHomeOf(options, partition, sender) ? 'stale_session' : 'unavailable';
  }
  const given = fleet.session(host) ?? 0;
  if (session > highestSession(given, clock.nowMs())) {
    // No hello gave it, unless this owner has not learnt of that yet, or a restore has lost it.
    return isHomeOf(options, partition, sender) ? 'stale_session' : 'unavailable';
  }
  return session < given ? 'stale_session' : undefined;
}
type ReportRefusal = Extract<ReportAnswer, { ok: false }>['error'];

export function takeReport(
  options: HostServerOptions,
  sender: Sender,
  report: Report,
  respond: (answer: ReportAnswer) => void,
): void {
  const { slices, log } = options;
  const partition = ownedPartition(options, report.partition);
  if (partition === undefined) return;
  const onFault = (error: unknown): void => log.error('report_failed', { host: sender.host, error });
  const isBegun = slices.begin(
    'report',
    takingIn(options, partition, { sender, report, respond }),
    onFault,
    sender.host,
  );
  if (!isBegun) respond({ ok: false, error: 'unavailable' });
}

/** Takes a few containers in each turn, and acknowledges when all are committed. */
function* takingIn(
  options: HostServerOptions,
  partition: Partition,
  {
    sender,
    report,
    respond,
  }: { readonly sender: Sender; readonly report: Report; readonly respond: (answer: ReportAnswer) => void },
): Generator<void, void, void> {
  const { items, pulls = [] } = report;
  // A report without containers takes one turn too.
  const turns = Math.max(1, ...[items, pulls].map(({ length }) => Math.ceil(length / reportItemsPerTurn)));
  let turnsLeft = turns;
  const later = new Set<number>();
  const onCommitted = (): void => {
    if (--turnsLeft === 0) respond(answerOf(later));
  };
  for (let turn = 0; turn < turns; turn++) {
    const [from, to] = [turn * reportItemsPerTurn, (turn + 1) * reportItemsPerTurn];
    const [taken, pulling] = [items.slice(from, to), pulls.slice(from, to)];
    const refusal = refusalOf(options, partition, sender, report);
    for (const [index, item] of taken.entries()) {
      if (isAhead(partition.view, sender.host, item)) later.add(from + index);
    }
    let place = from;
    const isTaken =
      refusal === undefined &&
      partition.change(
        'report',
        observing(options, sender.host, report.session, {
          items: taken,
          pulls: pulling,
          onItem: (index) => void (place = from + index),
        }),
        onCommitted,
        () => later.add(place),
      );
    if (!isTaken) {
      respond({ ok: false, error: refusal ?? 'unavailable' });
      return;
    }
    yield;
  }
}

const answerOf = (later: ReadonlySet<number>): ReportAnswer =>
  later.size > 0 ? { ok: false, error: 'unavailable', later: [...later] } : { ok: true };

const observing = (
  { log }: HostServerOptions,
  host: HostKey,
  session: number,
  {
    items,
    pulls,
    onItem,
  }: {
    readonly items: readonly ReportItem[];
    readonly pulls: readonly PullItem[];
    /** Called before the changes of an item. */
    readonly onItem: (index: number) => void;
  },
) =>
  function* (state: PartitionView, context: TurnContext): Generator<Changes, void, void> {
    for (const [index, item] of items.entries()) {
      onItem(index);
      let changes: Changes;
      try {
        changes = observe(state, host, session, item, context);
      } catch (error) {
        // A bug of ours; the other items are still taken.
        log.error('turn_failed', { kind: 'report', host, container: item.id, error });
        continue;
      }
      yield changes;
    }
    // After the items, which may say that a pull has begun.
    for (const pull of pulls) yield observePull(state, host, pull, context);
  };
