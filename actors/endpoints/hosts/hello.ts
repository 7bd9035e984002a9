/** Answers a hello, in which an agent asks for a session or for new credentials. */
import type { Hello, HelloAnswer } from '../../../schemas/wire/host.ts';
import { partitionOf, type Sender } from '../../../schemas/wire/subjects.ts';
import { hello } from '../../domain/host/decide.ts';
import { isEnrolled } from '../../domain/host/sender.ts';
import type { PartitionView } from '../../domain/state.ts';
import type { Fleet } from '../fleet.ts';
import { countRefused, ownedPartition, type HostServerOptions } from './server.ts';

/** Only the owner of the host's partition answers. */
export async function answerHello(
  options: HostServerOptions,
  sender: Sender,
  value: Hello,
  respond: (answer: HelloAnswer) => void,
): Promise<void> {
  const { fleet } = options;
  const { host } = sender;
  const partition = ownedPartition(options, partitionOf(host, options.cluster.partitions));
  if (partition === undefined) return;
  const refusal = refusalOfHello(partition.view, fleet, sender, value);
  if (refusal !== undefined) {
    if (refusal === 'unknown_host' || !isEnrolled(partition.view.host(host), sender))
      countRefused(options, 'hello', sender);
    respond({ ok: false, error: refusal });
    return;
  }
  const { renew_key: key } = value;
  const isDue = key !== undefined && partition.view.host(host)?.publicKey === key;
  const jwt = isDue ? await options.signJwt(host, key) : undefined;
  let answer: HelloAnswer = { ok: false, error: 'unknown_host' };
  const isTaken = partition.change(
    'hello',
    (state, context) => {
      // The host may have enrolled again while the key was signed: then the credentials are
      // dropped.
      const refused = refusalOfHello(state, fleet, sender, value);
      const greeted = refused === undefined ? hello(state, sender, value, context) : undefined;
      if (greeted === undefined) {
        answer = { ok: false, error: refused ?? 'unknown_host' };
        return [];
      }
      const { session, orphanWord } = greeted.record;
      const { id: cluster, partitions } = options.cluster;
      answer = {
        ok: true,
        cluster,
        partitions,
        session,
        orphan_word: orphanWord,
        ...(jwt === undefined ? {} : { jwt }),
      };
      return [greeted.changes];
    },
    () => {
      if (answer.ok) fleet.greeted(host);
      respond(answer);
    },
  );
  if (!isTaken) respond({ ok: false, error: 'unavailable' });
}

/** The refusal of a session; `undefined` if the hello gets one. */
function refusalOfHello(
  state: PartitionView,
  fleet: Fleet,
  sender: Sender,
  { session: held }: Hello,
): 'unknown_host' | 'fenced' | 'superseded' | undefined {
  const record = state.host(sender.host);
  if (record === undefined || record.publicKey === null) return 'unknown_host';
  if (record.fencedAtMs !== undefined) return 'fenced';
  if (!isEnrolled(record, sender)) {
    // If the enrolled agent is running, this one must stop its containers. If not, it keeps them: a
    // restore may have lost this agent's own enrolment.
    return fleet.isSuperseded(sender.host, -1, record.session) ? 'superseded' : 'unknown_host';
  }
  return held !== undefined && fleet.isSuperseded(sender.host, held, record.session) ? 'superseded' : undefined;
}
