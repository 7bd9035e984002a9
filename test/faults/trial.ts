/**
 * One run: starts a world and a load, injects the faults of a seed one after another, and judges
 * what clients saw.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from '../../lib/time/backoff.ts';
import { createRandom } from '../actors/support/random.ts';
import { check, explain } from './check/check.ts';
import { encodeHistory, type History, type Operation } from './check/history.ts';
import { createHttpClient } from './load/client.ts';
import { faultKinds, scheduleOf, type Scheduled } from './faults/schedule.ts';
import { judgeAudit } from './judge-audit.ts';
import { judgeEvents } from './judge-events.ts';
import { judgeJobs } from './judge-jobs.ts';
import { judgeLogs } from './judge-logs.ts';
import { judgeUsage } from './judge-usage.ts';
import { judgeConvergence, judgeDoubles, judgeGraceful, judgeMemory, judgeUpdates, type Judgement } from './judge.ts';
import { watchMemory, type Growth } from './world/memory.ts';
import { startJobs } from './load/jobs.ts';
import { settings, startProbes, type Probes } from './load/probes.ts';
import { startJetStreamProbes, type JetStreamProbes } from './load/jetstream.ts';
import { coveredMs, lengthMs, type Span } from './load/silence.ts';
import { createScope } from './world/scope.ts';
import { caps, goodTags, tenants } from './load/tenants.ts';
import { startUpdates } from './load/updates.ts';
import { startWorkload, type Workload } from './load/workload.ts';
import { startWorld, type World } from './world/world.ts';

export interface TrialOptions {
  readonly seed: number;
  readonly folder: string;
  readonly compiled: string;
  readonly hasNamespaces: boolean;
  readonly actors: readonly ['a1', ...'a2'[]];
  readonly faults: number;
  readonly only: readonly string[];
  readonly say: (line: string) => void;
}

export interface Injection {
  readonly kind: string;
  readonly text: string;
  /** The longest time without an answer for some tenant, until all were served again. */
  readonly unavailableMs: number;
  /** In this part of it JetStream itself did not serve a stream that the tenant needs. */
  readonly jetstreamMs: number;
}

export interface Trial {
  readonly seed: number;
  readonly injections: readonly Injection[];
  readonly operations: number;
  /** Acknowledged writes that were lost, as far as the history shows. */
  readonly losses: number;
  /** Operations that were done twice, as far as the history and the engine show. */
  readonly doubles: number;
  readonly judgements: readonly Judgement[];
  readonly growths: readonly Growth[];
  /** Holds the history and the logs. */
  readonly folder: string;
}

/** Before the first fault, clients connect and create containers. */
const warmUpMs = 3_000;
/**
 * Leaves room for a machine that is busy with other work: this checks that recovery comes, and the
 * closing table says how fast.
 */
const recoveryDeadlineMs = 120_000;
const recoveryPollMs = 50;
const finalDeadlineMs = 30_000;

async function setCaps(world: World): Promise<void> {
  const http = createHttpClient(1);
  const [gateway] = world.gateways;
  const token = await world.token('ops', 'operator');
  for (const tenant of tenants) {
    const path = `/api/v2/operator/tenants/${tenant}`;
    const heard = await http.send({ baseUrl: gateway?.baseUrl ?? '', method: 'PUT', path, token, body: settings });
    if (heard.kind !== 'answer' || heard.status !== 200) throw new Error(`${tenant}: its caps cannot be set`);
  }
  http.close();
}

async function untilServed(probes: Probes, sinceMs: number): Promise<boolean> {
  while (performance.now() < sinceMs + recoveryDeadlineMs) {
    if (probes.allServedSince(sinceMs)) return true;
    await sleep(recoveryPollMs);
  }
  return false;
}

interface Injected {
  readonly injection: Injection;
  readonly graceful: readonly string[];
  readonly unrecovered: readonly string[];
  /** Facts that contradict the promise of its kind. */
  readonly promise: string | undefined;
  readonly faults: readonly string[];
  /** The times of which streams may have lost messages. */
  readonly forgotten: readonly Span[];
  /** The times in which the engine and the agent had different clocks. */
  readonly undated: readonly Span[];
  readonly operations: readonly Operation[];
}

async function injectOne(
  { kind, planned, calmMs }: Scheduled,
  world: World,
  load: { readonly probes: Probes; readonly jetstream: JetStreamProbes; readonly workload: Workload },
  say: (line: string) => void,
): Promise<Injected> {
  await sleep(calmMs);
  const fromMs = performance.now();
  const harm = await planned.inject(world);
  const { faults = [], forgets, operations = [] } = harm;
  await sleep(planned.holdMs);
  const isServedMeanwhile = kind.isServed !== true || (await untilServed(load.probes, performance.now()));
  const unserved = isServedMeanwhile ? [] : [`some tenant is not served while ${planned.text}`];
  const afterwards = (await harm.heal()) ?? [];
  const healedMs = performance.now();
  const isServed = await untilServed(load.probes, healedMs);
  const untilMs = performance.now();
  const gap = load.probes.longestGap({ fromMs, toMs: untilMs });
  const unavailableMs = lengthMs(gap);
  const jetstreamMs = coveredMs(gap, load.jetstream.outages(gap.tenant, gap));
  const text = harm.note === undefined ? planned.text : `${planned.text} (${harm.note})`;
  const part = jetstreamMs === 0 ? '' : `, ${jetstreamMs.toFixed(0)} ms of it without JetStream`;
  say(`  ${kind.name}: ${text}; ${unavailableMs.toFixed(0)} ms without an answer (${gap.tenant} ${gap.kind})${part}`);
  return {
    injection: { kind: kind.name, text, unavailableMs, jetstreamMs },
    graceful: kind.isGraceful === true ? judgeGraceful(load.workload.failures, fromMs, untilMs) : [],
    unrecovered: isServed ? [] : [`${recoveryDeadlineMs / 1000} s after ${text}, some tenant is not served`],
    promise: kind.promise,
    faults: [...faults, ...unserved, ...afterwards],
    forgotten: forgets === undefined ? [] : [forgets],
    undated: kind.movesHostClock === true ? [{ fromMs, toMs: untilMs }] : [],
    operations,
  };
}

/** Those of all kinds, injected or not. */
const promises = (injected: readonly Injected[]): Judgement[] =>
  [...new Set(faultKinds.flatMap(({ promise }) => promise ?? []))].map((what) => ({
    what,
    faults: injected.filter(({ promise }) => promise === what).flatMap(({ faults }) => faults),
  }));

export async function runTrial(options: TrialOptions): Promise<Trial> {
  const { seed, folder, say, actors } = options;
  mkdirSync(folder, { recursive: true });
  const random = createRandom(seed);
  const schedule = scheduleOf({
    seed,
    count: options.faults,
    hasWire: options.hasNamespaces,
    actors,
    only: options.only,
  });
  const scope = createScope();
  try {
    const startMs = performance.now();
    const world = await startWorld(scope, { ...options, actorsCount: actors.length === 1 ? 1 : 2, random });
    say(`seed ${seed}: ${schedule.length} faults; ready in ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
    await setCaps(world);
    const memory = watchMemory(world);
    scope.teardown(() => memory.stop());
    const randomOf = () => createRandom(random.below(2 ** 31));
    const workload = await startWorkload(world, randomOf);
    const jobs = startJobs(world, randomOf);
    const updates = startUpdates(world, randomOf);
    const probes = await startProbes(world);
    scope.teardown(() => probes.stop());
    const jetstream = await startJetStreamProbes(world);
    scope.teardown(() => jetstream.stop());
    world.engine.setTrouble(true);
    await sleep(warmUpMs);

    const injected: Injected[] = [];
    for (const scheduled of schedule) {
      world.engine.crashSome();
      injected.push(await injectOne(scheduled, world, { probes, jetstream, workload }, say));
    }
    await Promise.all([workload, jobs, updates].map((load) => load.stop()));
    probes.stop();
    world.engine.setTrouble(false);
    const convergence = await judgeConvergence(world);
    world.engine.setTalking(false);
    const forgotten = injected.flatMap((each) => each.forgotten);
    const logs = await judgeLogs(world, forgotten);
    const ofJobs = await judgeJobs(world, jobs.jobs);
    const ofUpdates = await judgeUpdates(world, forgotten);
    const undated = injected.flatMap((each) => each.undated);
    const usage = await judgeUsage(world, forgotten, undated);
    await workload.finalLists(finalDeadlineMs);
    const asked = injected.flatMap(({ operations }) => operations);
    const audit = await judgeAudit(world, [...workload.operations, ...asked], forgotten);
    const events = await judgeEvents(world, workload.operations, forgotten);
    memory.stop();

    const history: History = { caps, goodTags, operations: workload.operations };
    writeFileSync(join(folder, 'history.jsonl'), encodeHistory(history));
    const checkMs = performance.now();
    const findings = check(history);
    const { created, started, removed } = world.engine.counts;
    say(
      `  ${history.operations.length} operations checked in ${((performance.now() - checkMs) / 1000).toFixed(1)} s; ` +
        `the engine made ${created} containers, started ${started} times, removed ${removed}, had ${world.engine.troubles()} troubles`,
    );
    for (const ending of world.endings) say(`  by itself: ${ending}, and was started again`);
    const growths = memory.growths();
    const count = (rule: string): number => findings.filter((finding) => finding.rule === rule).length;
    return {
      seed,
      injections: injected.map(({ injection }) => injection),
      operations: history.operations.length,
      losses: count('lost write'),
      doubles: count('done twice') + world.engine.doubles.length,
      judgements: [
        { what: 'every tenant is served again after each fault', faults: injected.flatMap((each) => each.unrecovered) },
        { what: 'no request fails while programs are replaced', faults: injected.flatMap((each) => each.graceful) },
        { what: 'each tenant’s history is linearizable', faults: findings.map(explain) },
        judgeDoubles(world),
        ...promises(injected),
        convergence,
        logs,
        ofJobs,
        ofUpdates,
        audit,
        events,
        usage,
        judgeMemory(growths),
      ],
      growths,
      folder,
    };
  } finally {
    await scope.end();
  }
}
