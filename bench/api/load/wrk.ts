/**
 * A closed loop: so many connections, each asking again as soon as it is answered. wrk makes it,
 * with one thread.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { run } from '../../../dev/process/run.ts';
import { decoder } from '../../../lib/decode.ts';
import type { Bench } from '../../section.ts';
import type { System } from '../ground.ts';
import { numberDigits, type Traffic } from './traffic.ts';

const Told = Type.Object({
  requests: Type.Integer(),
  us: Type.Number(),
  failures: Type.Integer(),
  p50us: Type.Number(),
  p99us: Type.Number(),
});
const decodeTold = decoder(Told);

export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const answerDeadlineS = 10;
const graceMs = 30_000;

/** JSON of ASCII text is a Lua string literal too. */
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
  /** wrk counts in whole seconds. */
  readonly forS: number;
}

/**
 * @throws where an answer is no success: a number of failures would be a number of something else.
 */
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
  const told: Static<typeof Told> = decodeTold(Buffer.from(line));
  if (told.failures > 0 || told.requests === 0) {
    throw new Error(`${system.name}: ${told.failures} failures in ${told.requests} answers:\n${ran.stdout}`);
  }
  return { perSecond: (told.requests * 1e6) / told.us, p50Ms: told.p50us / 1000, p99Ms: told.p99us / 1000 };
}
