/**
 * A fake control plane on a real nats-server with the two accounts: enrols a host over HTTP,
 * answers hello, sync and report over NATS, and holds the stream LOGS. It records what it receives.
 */
import { isDeepStrictEqual } from 'node:util';
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { jetstreamManager } from '@nats-io/jetstream';
import { credsAuthenticator, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import type { Test } from 'tap';
import { v7 } from 'uuid';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { credentialsOfCp, mintHostUserJwt } from '../../support/host-user.ts';
import { createLog } from '../../../lib/log.ts';
import { connectNats } from '../../../lib/nats/connection.ts';
import { decoder } from '../../../lib/decode.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { LogBlock, type LogEntry } from '../../../schemas/api/log.ts';
import {
  Beat,
  Hello,
  Report,
  SyncAsk,
  type DesiredContainer,
  type HelloAnswer,
  type PullItem,
  type ReportAnswer,
  type ReportItem,
  type SyncAnswer,
} from '../../../schemas/wire/host.ts';
import { anySender, partitionOf, senderOfSubject, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { until } from '../../support/until.ts';
import { answersFor, defaults, host, partitions, versionOf, type Desire, type State } from './control-plane-state.ts';
import { startEnrolment } from './enrolment.ts';
import { createVault, type Vault } from './secrets/vault.ts';

/**
 * An agent is silent if it sent none of so many heartbeats. Two agents of one host send theirs in
 * turn only about: each interval is longer or shorter by up to a tenth.
 */
const beatsOfSilence = 10;

const decode = {
  hello: decoder(Hello),
  sync: decoder(SyncAsk),
  report: decoder(Report),
  beat: decoder(Beat),
  block: decoder(LogBlock),
};

export interface ControlPlane {
  readonly cluster: string;
  /** Secrets and logins, as gateways seal them for the agent. */
  readonly vault: Vault;
  readonly nats: Nats;
  readonly gatewayUrl: string;
  /** Declares a container, or changes one: its generation rises, and the doorbell rings. */
  desire(desire: Desire): DesiredContainer;
  /** Declares several containers, with one doorbell for each partition. */
  desireAll(desires: readonly Desire[]): DesiredContainer[];
  /** Declares another version of a container, in the place of what runs (ADR 35). */
  update(id: ContainerId, desire: Desire): DesiredContainer;
  /** Learns the end of a container's update: forgets one of its versions. */
  settle(id: ContainerId): void;
  /** Changes how much a container may write; nothing else of it, and not its generation. */
  raise(id: ContainerId, disk_bytes: number): void;
  /** Places the containers elsewhere. */
  drop(...ids: ContainerId[]): void;
  /** Deletes containers that were placed elsewhere. */
  erase(...ids: ContainerId[]): void;
  /** Forgets the containers, as after a restore. */
  lose(...ids: ContainerId[]): void;
  hold(id: ContainerId): void;
  /** Approvals of an operator to remove held orphans; the agent acts on a new count. */
  setOrphanApprovals(count: number): void;
  /** Stops answering, as when every actors process is down. */
  goAway(): void;
  comeBack(): Promise<void>;
  /** Every answer names another cluster from now on. */
  impersonate(cluster: string): void;
  /** Answers no sync, but hellos and reports. */
  ignoreSyncs(isOn: boolean): void;
  /** The same cluster, restored from a backup made before this host existed. */
  restore(): void;
  /** The newest report of a container. */
  last(id: ContainerId): ReportItem | undefined;
  /** All reports, in order. */
  reports(id?: ContainerId): ReportItem[];
  /** The progress that the agent reported of the pulls of a container's image, in order. */
  pulls(id: ContainerId): PullItem[];
  /** Waits for a report that the check accepts. */
  reported(id: ContainerId, check: (item: ReportItem) => boolean, deadlineMs?: number): Promise<ReportItem>;
  /** The reported statuses, without repetitions in a row. */
  statuses(id: ContainerId): string[];
  beats(): Beat[];
  /** The sender of each beat, from its subject. */
  senders(): Sender<string>[];
  /** Forgets this host, as after a restore: refuses hellos and reports, answers no sync. */
  forget(): void;
  hellos(): Hello[];
  /** Faults of the protocol: a `seq` that did not rise, a message that does not decode. */
  faults(): string[];
  /** Makes the stream take and acknowledge log blocks, or not. */
  capture(isOn: boolean): Promise<void>;
  /** Lines of LOGS in the order of the stream, including repetitions. */
  capturedLines(id: ContainerId): Promise<LogEntry[]>;
}

export async function startControlPlane(t: Test, dir: string): Promise<ControlPlane> {
  const nats = await startNats({ dir });
  t.teardown(() => nats.stop());
  const log = createLog('test', 'silent');
  // It speaks as actors, as gateways and as JetStream's administrator.
  const authenticator = credsAuthenticator(await credentialsOfCp(nats.credsFile));
  const nc = await connectNats({ servers: [nats.url], name: 'test control plane', authenticator }, log);
  t.teardown(() => nc.close());
  const manager = await jetstreamManager(nc);
  await manager.streams.add({ name: 'LOGS', subjects: ['host.*.log.>'] });

  const cluster = randomUUID();
  const state: State = {
    containers: new Map(),
    held: new Map(),
    gone: new Set(),
    erased: new Set(),
    revisions: Array.from({ length: partitions }, () => 1),
    session: 0,
    orphanApprovals: 0,
    answeringCluster: cluster,
    incarnation: 0,
  };
  const vault = createVault();
  const items: ReportItem[] = [];
  const pulls: PullItem[] = [];
  const beats: Beat[] = [];
  const senders: Sender<string>[] = [];
  let hasForgotten = false;
  const hostsSigningSeed = readFileSync(nats.hostsSigningSeedFile, 'utf8');
  const hellos: Hello[] = [];
  const faults: string[] = [];
  const newest = new Map<ContainerId, ReportItem>();

  const jwtFor = (publicKey: string): Promise<string> => {
    const { hostsAccount } = nats;
    return mintHostUserJwt({ hostKey: host, publicKey, hostsAccount, hostsSigningSeed });
  };

  const onHello = async (message: Msg): Promise<HelloAnswer> => {
    const asked = decode.hello(message.data);
    hellos.push(asked);
    if (hasForgotten) return { ok: false, error: 'unknown_host' };
    const jwt = asked.renew_key === undefined ? {} : { jwt: await jwtFor(asked.renew_key) };
    const isAnotherHeard = beats.slice(-beatsOfSilence).some(({ session }) => session === state.session);
    if (asked.session !== undefined && asked.session < state.session && isAnotherHeard) {
      return { ok: false, error: 'superseded' };
    }
    state.session = Math.max(state.session, asked.highest_session ?? 0) + 1;
    const { session, orphanApprovals, answeringCluster } = state;
    return { ok: true, cluster: answeringCluster, partitions, session, orphan_word: orphanApprovals, ...jwt };
  };

  let ignoresSyncs = false;
  const onSync = (message: Msg): SyncAnswer[] => {
    if (ignoresSyncs || hasForgotten) return [];
    const ask = decode.sync(message.data);
    const asked = ask.partitions ?? Array.from({ length: partitions }, (_, partition) => partition);
    return asked.flatMap((partition) => {
      const own = (ask.strangers ?? []).filter(({ tenant }) => partitionOf(tenant, partitions) === partition);
      const gone = own
        .filter(({ id }) => state.gone.has(id))
        .map(({ id, placement }) => ({ id, placement, ...(state.erased.has(id) ? { deleted: true as const } : {}) }));
      return answersFor(state, partition, ask.held[partition]).map((answer) =>
        answer.part === 0 ? { ...answer, gone } : answer,
      );
    });
  };

  const numbered = new Map<ContainerId, { readonly session: number; readonly item: ReportItem }>();
  const onReport = (message: Msg): ReportAnswer => {
    const report = decode.report(message.data);
    if (hasForgotten || report.session < state.session) return { ok: false, error: 'stale_session' };
    for (const item of report.items) {
      const last = numbered.get(item.id);
      const isRepeated = isDeepStrictEqual(last?.item, item);
      const rises = last === undefined || report.session > last.session || item.seq > last.item.seq;
      if (!rises && !isRepeated) faults.push(`seq ${item.seq} after ${last.item.seq} in session ${report.session}`);
      numbered.set(item.id, { session: report.session, item });
      if (partitionOf(item.tenant, partitions) !== report.partition)
        faults.push(`${item.tenant} in ${report.partition}`);
      items.push(item);
      newest.set(item.id, item);
    }
    for (const pull of report.pulls ?? []) {
      if (partitionOf(pull.tenant, partitions) !== report.partition)
        faults.push(`${pull.tenant} in ${report.partition}`);
      pulls.push(pull);
    }
    return { ok: true };
  };

  const serve = async (): Promise<Subscription[]> => {
    type Handle = (message: Msg) => object[] | Promise<object[]>;
    const answer = async (message: Msg, handle: Handle): Promise<void> => {
      try {
        for (const each of await handle(message)) message.respond(JSON.stringify({ ...protocolFields, ...each }));
      } catch (error) {
        faults.push(`${message.subject}: ${String(error)}`);
      }
    };
    const on = (subjectOf: (sender: Sender<'*'>) => string, handle: Handle): Subscription =>
      nc.subscribe(subjectOf(anySender), { callback: (_, message) => void answer(message, handle) });
    const subscriptions = [
      on(subjects.hostHello, async (message) => [await onHello(message)]),
      on(subjects.hostSync, onSync),
      on(subjects.hostReport, (message) => [onReport(message)]),
      on(subjects.hostBeat, (message) => {
        beats.push(decode.beat(message.data));
        senders.push(senderOfSubject(message.subject));
        return [];
      }),
    ];
    await nc.flush();
    return subscriptions;
  };
  let serving = await serve();
  // Gateways serve it, so it is here whatever the owners do.
  await vault.serve(nc);

  const change = (ids: readonly ContainerId[], act: () => void): void => {
    const before = ids.map((id) => state.containers.get(id));
    act();
    const touched = [...before, ...ids.map((id) => state.containers.get(id))].flatMap((each) =>
      each === undefined ? [] : [partitionOf(each.tenant, partitions)],
    );
    for (const partition of new Set(touched)) {
      state.revisions[partition] = (state.revisions[partition] ?? 0) + 1;
      nc.publish(
        subjects.desired(host, partition),
        JSON.stringify({ ...protocolFields, partition, rid: 'test-request' }),
      );
    }
  };

  const declare = (desire: Desire): DesiredContainer => {
    const id = desire.id ?? (v7() as ContainerId);
    const before = state.containers.get(id);
    const generation = (before?.generation ?? 0) + 1;
    const container = { ...(before ?? defaults(id)), ...desire, id, generation } as DesiredContainer;
    state.containers.set(id, container);
    return container;
  };
  const declared = (id: ContainerId): DesiredContainer => {
    const container = state.containers.get(id);
    if (container === undefined) throw new Error(`${id} is not declared`);
    return container;
  };
  const desireAll = (desires: readonly Desire[]): DesiredContainer[] => {
    const named = desires.map((desire) => ({ ...desire, id: desire.id ?? (v7() as ContainerId) }));
    let declared: DesiredContainer[] = [];
    change(
      named.map(({ id }) => id),
      () => (declared = named.map(declare)),
    );
    return declared;
  };

  return {
    cluster,
    vault,
    nats,
    gatewayUrl: await startEnrolment(t, nats, cluster, jwtFor),
    desire: (desire) => desireAll([desire])[0] as DesiredContainer,
    desireAll,
    update: (id, desire) => {
      const before = declared(id);
      const since = before.generation + 1;
      const update = { since, previous: before.update?.previous ?? versionOf(before) };
      return desireAll([{ ...desire, id, update }])[0] ?? before;
    },
    settle: (id) => {
      const { update, ...rest } = declared(id);
      const isBack = newest.get(id)?.update?.phase === 'rolled_back';
      const back = isBack ? { ...update?.previous, generation: rest.generation + 1 } : {};
      change([id], () => state.containers.set(id, { ...rest, ...back }));
    },
    raise: (id, disk_bytes) => change([id], () => state.containers.set(id, { ...declared(id), disk_bytes })),
    drop: (...ids) => {
      for (const id of ids) state.gone.add(id);
      change(ids, () => ids.forEach((id) => state.containers.delete(id)));
    },
    erase: (...ids) => {
      for (const id of ids) state.erased.add(id);
    },
    lose: (...ids) => change(ids, () => ids.forEach((id) => state.containers.delete(id))),
    hold: (id) =>
      change([id], () => {
        const tenant = state.containers.get(id)?.tenant ?? '';
        state.held.set(id, partitionOf(tenant, partitions));
        state.containers.delete(id);
      }),
    setOrphanApprovals: (count) => {
      state.orphanApprovals = count;
      state.revisions.forEach((_, partition) => nc.publish(subjects.desired(host, partition), ''));
    },
    goAway: () => {
      for (const subscription of serving) subscription.unsubscribe();
    },
    comeBack: async () => {
      serving = await serve();
    },
    ignoreSyncs: (isOn) => {
      ignoresSyncs = isOn;
    },
    restore: () => {
      newest.clear();
      state.session = 0;
      state.incarnation += 1;
    },
    impersonate: (other) => {
      state.answeringCluster = other;
    },
    pulls: (id) => pulls.filter((pull) => pull.id === id),
    last: (id) => newest.get(id),
    reports: (id) => items.filter((item) => id === undefined || item.id === id),
    reported: (id, check, deadlineMs = 60_000) =>
      until(
        () => `the awaited report; the last was ${JSON.stringify(newest.get(id))}`,
        () => {
          const item = newest.get(id);
          return item !== undefined && check(item) ? item : undefined;
        },
        undefined,
        deadlineMs,
      ),
    statuses: (id) => {
      const all = items.filter((item) => item.id === id).map(({ observation }) => observation.status);
      return all.filter((status, index) => status !== all[index - 1]);
    },
    beats: () => beats,
    senders: () => senders,
    forget: () => {
      hasForgotten = true;
    },
    hellos: () => hellos,
    faults: () => faults,
    capture: async (isOn) => {
      await manager.streams.update('LOGS', { subjects: [isOn ? 'host.*.log.>' : 'nothing.>'] });
    },
    capturedLines: (id) => capturedLines(nc, id),
  };
}

async function capturedLines(nc: NatsConnection, id: ContainerId): Promise<LogEntry[]> {
  const manager = await jetstreamManager(nc);
  const { state } = await manager.streams.info('LOGS');
  const lines: LogEntry[] = [];
  for (let seq = Math.max(1, state.first_seq); seq <= state.last_seq; seq++) {
    const message = await manager.streams.getMessage('LOGS', { seq });
    if (message === null || !message.subject.endsWith(id)) continue;
    lines.push(...decode.block(message.data).lines);
  }
  return lines;
}
