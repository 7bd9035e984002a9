/**
 * A server with a damaged disk: while it is down, the fault flips a bit of a message block or cuts
 * off its end. Half of the time that server then becomes leader of the stream, and all actors are
 * killed, so that partitions are loaded from it.
 */
import { closeSync, ftruncateSync, openSync, readdirSync, readSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '../../actors/support/random.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { NatsPlaceName } from '../world/wire.ts';
import type { World } from '../world/world.ts';
import { targetOf } from './streams.ts';
import { between, type FaultKind } from './fault.ts';

type Harm = (file: string, bytes: number, at: number) => string;

const flipBit: Harm = (file, bytes, at) => {
  const position = Math.floor(at * bytes);
  const handle = openSync(file, 'r+');
  try {
    const byte = Buffer.alloc(1);
    readSync(handle, byte, 0, 1, position);
    byte[0] = byte[0]! ^ (1 << (position % 8));
    writeSync(handle, byte, 0, 1, position);
  } finally {
    closeSync(handle);
  }
  return `a bit of byte ${position} of ${bytes}`;
};

const truncate: Harm = (file, bytes, at) => {
  const kept = Math.floor(at * bytes);
  const handle = openSync(file, 'r+');
  try {
    ftruncateSync(handle, kept);
  } finally {
    closeSync(handle);
  }
  return `all after byte ${kept} of ${bytes}`;
};

/** The largest message block of a stream; the other blocks of a small stream are almost empty. */
function blockOf(storeDir: string, stream: string): { file: string; bytes: number } | undefined {
  const inside = `/${stream}/msgs/`;
  return readdirSync(storeDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.blk') && `/${name}`.includes(inside))
    .map((name) => join(storeDir, name))
    .map((file) => ({ file, bytes: statSync(file).size }))
    .toSorted((left, right) => right.bytes - left.bytes)
    .at(0);
}

/** Time in which a replica that was away catches up. */
const catchUpMs = 2_000;

/** After a load from this server alone. */
export async function loadFrom(world: World, stream: string, server: NatsPlaceName): Promise<void> {
  await sleep(catchUpMs);
  await world.giveLead(stream, server);
  const actors = (['a1', 'a2'] as const).flatMap((place) => world.processes.get(place) ?? []);
  await Promise.all(actors.map((each) => each.kill9()));
  await Promise.all(actors.map((each) => each.start()));
}

const onDisk = (name: string, what: string, harm: Harm): FaultKind => ({
  name,
  needsWire: false,
  plan: (random: Random) => {
    const server = random.pick(['n1', 'n2', 'n3'] as const);
    const target = targetOf(random);
    const isCrash = random.once(2);
    const isLed = random.once(2);
    // Prefers the end: messages at the front have been replaced by newer ones.
    const at = Math.sqrt(random.below(1_000_000) / 1_000_000);
    const holdMs = between(random, 500, 2_000);
    const then = isLed ? '; it becomes the leader, and all actors are killed' : '';
    return {
      text: `${server} is ${isCrash ? 'killed' : 'stopped'}, ${what} ${target.text}, and started after ${holdMs} ms${then}`,
      holdMs,
      inject: async (world: World) => {
        const node = world.nats.nodes.find((each) => each.name === server);
        if (node === undefined) throw new Error(`no server ${server}`);
        const stream = await target.find(world);
        await (isCrash ? node.kill9() : node.stop());
        const block = blockOf(node.storeDir, stream);
        if (block === undefined) throw new Error(`${server} has no message block of ${stream}`);
        const note = `${stream}: ${harm(block.file, block.bytes, at)}`;
        return {
          note,
          heal: async () => {
            await node.start();
            if (isLed) await loadFrom(world, stream, server);
          },
        };
      },
    };
  },
});

export const diskFaults: readonly FaultKind[] = [
  onDisk('disk: bit flipped', 'a bit is flipped in', flipBit),
  onDisk('disk: truncated', 'the end is cut off', truncate),
];
