/** Takes in what syncs bring: keeps the desired set on disk and hands it to the reconciler. */
import type { Sender } from '../../../schemas/wire/subjects.ts';
import { incarnationOfEpoch } from '../../../schemas/records/cluster.ts';
import type { Faults } from '../../faults.ts';
import type { Reconciler } from '../../reconcile/reconciler.ts';
import type { DesiredSet } from '../../workload/desired.ts';
import type { DesiredStore } from '../../workload/desired-store.ts';
import type { Credentials } from '../identity/credentials.ts';
import type { Standing } from '../standing.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import type { SyncTarget } from './sync.ts';

const behind = (epoch: number): string =>
  'this host ignores the control plane, which was restored by a machine whose clock was behind: restore again with ' +
  `--incarnation-above ${incarnationOfEpoch(epoch)}, or let this host forget (docs/runbook.md, "Host faults")`;

export interface TargetParts {
  readonly sender: Sender;
  readonly desired: DesiredSet;
  readonly store: Pick<DesiredStore, 'save'>;
  readonly reconciler: () => Reconciler;
  readonly volumes: () => Pick<Volumes, 'strangers' | 'hear'>;
  readonly standing: () => Pick<Standing, 'fenced' | 'settled'>;
  readonly renewSession: () => void;
  readonly credentials: Pick<Credentials, 'signer'>;
  readonly faults: Pick<Faults, 'restate' | 'clear'>;
}

export function createSyncTarget(parts: TargetParts): SyncTarget {
  const { reconciler, standing, volumes } = parts;
  let { desired } = parts;
  let incarnation = 0;
  let syncsAhead = 0;
  return {
    sender: parts.sender,
    current: () => desired,
    update: (next) => {
      desired = next;
      parts.store.save(next);
      reconciler().setDesired(next, 'owners');
    },
    settled: () => {
      standing().settled();
      reconciler().desiredSettled();
    },
    fenced: () => standing().fenced(),
    signer: (key) => {
      if (parts.credentials.signer(key)) parts.renewSession();
    },
    orphanWord: (word) => reconciler().setOrphanWord(word),
    strangers: () => [...reconciler().strangers(), ...volumes().strangers()],
    unjudged: () => reconciler().unjudged(),
    verdicts: (named, gone) => {
      reconciler().hearVerdicts(named, gone);
      void volumes().hear(named, gone);
    },
    incarnation: (announced) => {
      // The cluster was restored: it has lost what it acknowledged since the backup, so the agent
      // reports everything again in a new session. This holds before the first answer too: the
      // cluster may have acknowledged reports by then.
      if (announced > incarnation) parts.renewSession();
      incarnation = Math.max(announced, incarnation);
    },
    obeyed: (ahead) => {
      syncsAhead = ahead === undefined ? 0 : syncsAhead + 1;
      if (ahead === undefined) parts.faults.clear('control_plane_behind');
      // During a takeover a former owner may answer once more.
      else if (syncsAhead > 1) parts.faults.restate('control_plane_behind', behind(ahead));
    },
  };
}
