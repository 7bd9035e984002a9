/**
 * Reports the progress of pulls to the control plane: at most once a second, and only changes.
 * Nobody waits for it, and a lost report is made up for by the next change; so it is sent beside
 * the reports, which are repeated until they are committed.
 */
import { isDeepStrictEqual } from 'node:util';
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { ReportAnswer, type PullItem, type Report } from '../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import type { Request } from './connection.ts';
import type { Session } from './reporter.ts';

const decodeAnswer = messageDecoder(ReportAnswer);

interface PullReportsParts {
  /** The pulls that containers wait for, as they are now. */
  readonly pulls: () => readonly PullItem[];
  /** Resolves when one of them makes progress, or the signal aborts. */
  readonly moved: (signal: AbortSignal) => Promise<void>;
  readonly session: () => Session | undefined;
  readonly sender: Sender;
  readonly request: Request;
  readonly everyMs: number;
  readonly log: Log;
}

/** Resolves when the signal aborts. */
export async function reportPulls(parts: PullReportsParts, signal: AbortSignal): Promise<void> {
  let told: ReadonlyMap<ContainerId, PullItem> = new Map();

  /** The items that the owner has acknowledged. */
  const send = async (items: readonly PullItem[], partition: number, session: number): Promise<readonly PullItem[]> => {
    const report: Report = { v: 1, ...protocolFields, partition, session, items: [], pulls: [...items] };
    try {
      const payload = JSON.stringify(report);
      const answer = await parts.request(subjects.hostReport(parts.sender), payload, limits.reportTimeoutMs);
      return decodeAnswer(answer).ok ? items : [];
    } catch (error) {
      parts.log.debug('pull_report_failed', { partition, error });
      return [];
    }
  };

  const news = (): readonly PullItem[] => parts.pulls().filter((item) => !isDeepStrictEqual(item, told.get(item.id)));

  const tell = async ({ session, partitions }: Session): Promise<void> => {
    const byPartition = new Map<number, PullItem[]>();
    for (const item of news()) {
      const partition = partitionOf(item.tenant, partitions);
      const items = byPartition.get(partition) ?? [];
      // The others wait for the next second.
      if (items.length < limits.reportItems) byPartition.set(partition, [...items, item]);
    }
    const sent = [...byPartition].map(([partition, items]) => send(items, partition, session));
    const heard = (await Promise.all(sent)).flat();
    const still = parts.pulls().flatMap(({ id }) => told.get(id) ?? []);
    told = new Map([...still, ...heard].map((item) => [item.id, item]));
  };

  while (!signal.aborted) {
    if (news().length === 0) await parts.moved(signal);
    const session = parts.session();
    if (session !== undefined && !signal.aborted) await tell(session);
    await sleep(parts.everyMs, signal);
  }
}
