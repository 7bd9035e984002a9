/**
 * A closed loop: each connection sends its next request as soon as the last is answered. wrk
 * generates the load with one thread.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { run } from '../../../dev/process/run.ts';
import { decoder } from '../../../lib/decode.ts';
import type { Bench } from '../../section.ts';
import type { System } from '../ground.ts';
import { numberDigits, type Traffic } from './traffic.ts';

const Summary = Type.Object({
  requests: Type.Integer(),
  us: Type.Number(),
  failures: Type.Integer(),
  p50us: Type.Number(),
  p99us: Type.Number(),
});
const decodeSummary = decoder(Summary);

export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const answerDeadlineS = 10;
const graceMs = 30_000;

/** A JSON string of ASCII text is also a Lua string literal. */
const literal = (text: string): string => JSON.stringify(text);

const scriptOf = ({ heads, body }: Traffic): string => `
local heads = {
${heads.map((head) => `  ${literal(head)},`).join('\n')}
}
local count = #heads
local number = 0

function request()
  local head = heads[math.random(count)]
${
  body === undefined
    ? '  return head'
    : `  number = number + 1
  return head .. ${literal(body[0])} .. string.format("%0${numberDigits}d", number) .. ${literal(body[1])}`
}
end

function done(summary, latency)
  local errors = summary.errors
  local failures = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format(
    '\\n{"requests":%d,"us":%d,"failures":%d,"p50us":%d,"p99us":%d}\\n',
    summary.requests, summary.duration, failures, latency:percentile(50), latency:percentile(99)
  ))
end
`;

export interface ClosedLoop {
  readonly system: System;
  readonly traffic: Traffic;
  readonly connections: number;
  /** Whole seconds, because wrk takes no fractions. */
  readonly forS: number;
}

/** @throws if any answer is not a success, because failures would distort the figures */
export async function closedLoop(bench: Bench, { system, traffic, connections, forS }: ClosedLoop): Promise<Measured> {
  bench.signal.throwIfAborted();
  const wrk = await bench.tool('wrk');
  const folder = join(bench.folder, 'wrk');
  mkdirSync(folder, { recursive: true });
  const script = join(folder, 'traffic.lua');
  writeFileSync(script, scriptOf(traffic));
  const args = ['-t1', `-c${connections}`, `-d${forS}s`, '--timeout', `${answerDeadlineS}s`, '-s', script];
  const ran = await run(wrk.path, [...args, system.baseUrl], { env: wrk.env, deadlineMs: forS * 1000 + graceMs });
  const line = ran.stdout.trim().split('\n').at(-1) ?? '';
  if (ran.code !== 0 || !line.startsWith('{')) throw new Error(`wrk: ${ran.code} ${ran.stdout}${ran.stderr}`);
  const summary: Static<typeof Summary> = decodeSummary(Buffer.from(line));
  const { requests, failures, us, p50us, p99us } = summary;
  if (requests === 0) throw new Error(`${system.name}: no answer within ${forS} s:\n${ran.stdout}`);
  if (failures > 0) throw new Error(`${system.name}: ${failures} failures in ${requests} answers:\n${ran.stdout}`);
  return { perSecond: (requests * 1e6) / us, p50Ms: p50us / 1000, p99Ms: p99us / 1000 };
}
