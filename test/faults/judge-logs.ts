/**
 * Judges the logs of the containers that exist at the end: each line that a program wrote is there
 * once and in order, whichever copy wrote it, or the agent has said that it is lost, or the stream
 * has lost it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { Container } from '../../schemas/api/container.ts';
import { LogEntry } from '../../schemas/api/log.ts';
import { limits } from '../../schemas/limits.ts';
import { listen } from '../support/http/event-stream.ts';
import { settledFaults } from './asking.ts';
import { grouped } from './check/items.ts';
import type { Series } from './engine/programs.ts';
import type { Judgement } from './judge.ts';
import { compute, encoded } from './load/requests.ts';
import { overlaps, type Span } from './load/silence.ts';
import { allTenants } from './load/tenants.ts';
import { createScope } from './world/scope.ts';
import type { World } from './world/world.ts';

const decodeList = decoder(Type.Object({ data: Type.Array(Type.Object({ id: Container.properties.id })) }));
const decodeEntry = decoder(LogEntry);

/** A log that says nothing for so long is read to its end. */
const quietMs = 10_000;
/** One that goes on, because its container crashes again and again, is read for so long. */
const readMs = 20_000;
const lookMs = 20;

/** True for a line of the agent about missing lines (docs/api.md, Logs). */
const saysLost = ({ stream, line }: LogEntry): boolean => stream === 'stderr' && line.startsWith('[longshore] ');

/**
 * Faults in the log of one container.
 * @param forgotten lines that were written in these times may be missing
 */
export function logFaults(
  id: string,
  written: readonly Series[],
  entries: readonly LogEntry[],
  forgotten: readonly Span[] = [],
): string[] {
  const faults: string[] = [];
  const last = new Map(written.map(({ prefix }) => [prefix, 0]));
  const series = new Map(written.map((each) => [each.prefix, each]));
  const areForgotten = (prefix: string, after: number, before: number): boolean =>
    (series.get(prefix)?.writtenMs ?? [])
      .slice(after, before - 1)
      .every((atMs) => overlaps({ fromMs: atMs, toMs: atMs }, forgotten));
  // The oldest blocks may be gone, and each has a line at least.
  const isWhole = entries.length < limits.logBlocksPerContainer;
  const mayLack = new Set(isWhole ? [] : last.keys());
  let lastTs = '';
  for (const entry of entries) {
    if (saysLost(entry)) {
      for (const prefix of last.keys()) mayLack.add(prefix);
      continue;
    }
    const [prefix = '', number] = entry.line.split(' ');
    const before = last.get(prefix);
    const count = Number(number);
    if (before === undefined) faults.push(`${id}: a line of no copy of it: ${entry.line}`);
    else if (count <= before) faults.push(`${id}: line ${count} of ${prefix} comes again or late, after ${before}`);
    else if (count > before + 1 && !mayLack.has(prefix) && !areForgotten(prefix, before, count))
      faults.push(`${id}: ${prefix} lacks the lines ${before + 1} to ${count - 1}`);
    if (before !== undefined) last.set(prefix, Math.max(before, count));
    mayLack.delete(prefix);
    if (entry.ts < lastTs) faults.push(`${id}: ${entry.line} of ${entry.ts} comes after a line of ${lastTs}`);
    lastTs = entry.ts;
  }
  for (const { prefix, lines, isRemoved } of written) {
    const read = last.get(prefix) ?? 0;
    if (read < lines && !mayLack.has(prefix) && !isRemoved && !areForgotten(prefix, read, lines + 1))
      faults.push(`${id}: ${prefix} wrote ${lines} lines, and ${read} came`);
  }
  return faults;
}

/** All that is kept, as a client follows it: until the ends of all copies came, or no more come. */
async function entriesOf(world: World, token: string, id: string, written: readonly Series[]): Promise<LogEntry[]> {
  const scope = createScope();
  try {
    const url = `${world.gateways[0]?.baseUrl ?? ''}${compute}/${id}/logs?follow=true`;
    const { response, frames, raw } = await listen(scope, url, {
      authorization: `Bearer ${token}`,
      'last-event-id': '0',
    });
    if (response.status !== 200) throw new Error(`the log of ${id}: ${response.status}`);
    const entries = (): LogEntry[] =>
      frames.filter(({ event }) => event === 'log').map(({ data }) => decodeEntry(encoded(data)));
    const ends = written.map(({ prefix, lines }) => `${prefix} ${lines}`);
    const endMs = performance.now() + readMs;
    const isQuiet = (sinceMs: number): boolean => performance.now() > Math.min(sinceMs + quietMs, endMs);
    let seen = 0;
    for (let sinceMs = performance.now(); !raw.ended && !isQuiet(sinceMs); await delay(lookMs)) {
      if (frames.length === seen) continue;
      sinceMs = performance.now();
      seen = frames.length;
      const read = new Set(entries().map(({ line }) => line));
      if (ends.every((end) => read.has(end))) break;
    }
    return entries();
  } finally {
    await scope.end();
  }
}

/** Once programs write no more. */
export async function judgeLogs(world: World, forgotten: readonly Span[]): Promise<Judgement> {
  const byContainer = grouped(world.engine.programs.series, ({ container }) => container);
  let lines = 0;
  const faults = await settledFaults(world, async (askerOf) => {
    lines = 0;
    const look = async (tenant: string): Promise<string[]> => {
      const token = await world.token(tenant);
      const { data } = await (await askerOf(tenant))(compute, decodeList);
      const faultsOf = async (id: string): Promise<string[]> => {
        // As they are now: more may be written meanwhile.
        const written = (byContainer.get(id) ?? []).map((series) => ({ ...series }));
        if (written.length === 0) return [];
        lines += written.reduce((sum, series) => sum + series.lines, 0);
        const entries = await entriesOf(world, token, id, written);
        return logFaults(id, written, entries, forgotten).map((text) => `${tenant} ${text}`);
      };
      return (await Promise.all(data.map(({ id }) => faultsOf(id)))).flat();
    };
    return (await Promise.all(allTenants.map(look))).flat();
  });
  return { what: `each of the ${lines} log lines comes once and in order`, faults };
}
